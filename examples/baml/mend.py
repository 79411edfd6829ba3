"""Parse a reply that isn't valid JSON with BAML's parser, and audit with its validator.

pip install '.[baml]'
python examples/baml/mend.py
"""

import masis
from masis.integrations.baml import repair_record
from masis.llm.roles.replies import ClaimsReply

REPLY = """Here are the claims:
```json
{
  'claims': [
    {'number': 1, 'sentence': 1, 'words': '', 'meaning': ''},  // chunk 1
    {'number': 2, 'sentence': 2, 'words': '', 'meaning': 'The bridge was opened in 1931.'},
  ],
}
```"""

found = repair_record(REPLY, ClaimsReply)
assert found is not None
print(len(found.value["claims"]), "claims; mended:", ", ".join(found.repairs))

# A truncated reply isn't completed, because its missing part is unknown.
print("cut off:", repair_record(REPLY[:150], ClaimsReply))

case = masis.Case.model_validate(
    {
        "id": "bridge",
        "query": "How long is the bridge?",
        "answer": "The bridge is 180 metres long [1].",
        "evidence": [{"id": "1", "text": "The bridge is 120 metres long."}],
    }
)
run = masis.run_audit(case, masis.Settings(output_validator="baml"))
print("passed:", run.final_answer)
