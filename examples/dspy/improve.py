"""Improve an answer with critic and reviser as DSPy modules; compile the critic on the demo cases.

    pip install '.[dspy]'
    python examples/dspy/improve.py openai:gpt-4o-mini

The model is one that masis.toml and the environment can reach (docs/models.md), with OPENAI_API_KEY
for this one.
"""

import sys

from masis.integrations.dspy import (
    CriticAgent,
    MultiAgentCriticLoop,
    RevisionAgent,
    labelled,
    programs,
)
from masis.integrations.dspy.compiling import Session, compile_program
from masis.services import demo_cases
from masis.settings import load

if len(sys.argv) != 2:
    sys.exit(__doc__)
model = sys.argv[1]
provider, _, name = model.partition(":")
settings = load().settings

# or CriticAgent(lm=dspy.LM("openai/gpt-4o-mini"))
critic = CriticAgent(provider, name, settings=settings)
reviser = RevisionAgent(provider, name, settings=settings)
loop = MultiAgentCriticLoop(critic, reviser, max_iterations=2)

found = loop(
    original_query="How long is the bridge, and when was it built?",
    initial_answer="It is 90 metres long [report]. It was built in 1932 [report].",
    evidence_chunks=[
        {"id": "report", "text": "The bridge measures 120 metres. It was opened in 1932."},
        {"id": "survey", "text": "The river is 80 metres wide at this place."},
    ],
)
print(
    f"{found.final_answer}\n({found.termination_reason} after {found.total_iterations} iterations)"
)
for iteration in found.iterations:
    for issue in iteration.issues_identified:
        print(f"  {iteration.iteration_number}. {issue.severity}: {issue.description}")

parts = labelled.split_by_question(labelled.from_cases(demo_cases()), held_out=0.5, seed=0)
plan = programs.Plan(
    name="example", role="critic", optimizer="bootstrap", model=model, source="demo"
)
program = compile_program(Session(plan, settings), parts)
kept, file = programs.save_program(programs.folder(settings.programs_folder), program)
print(
    f"{kept.string}: {kept.before.mean:.3f} before, {kept.after.mean:.3f} after, on"
    f" {kept.after.answers} answers"
)
print(f"Use it with: masis audit CASES --model critic={kept.string}")
