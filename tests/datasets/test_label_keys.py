"""Keys of gold labels: a misspelled one is an error, because it would hide its label."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import masis
from masis.datasets.mapping.reader import read_any
from masis.errors import InputError
from masis.schema.case import Case

CASE = {"id": "a", "query": "Why?", "answer": "So [1].", "evidence": [{"id": "1", "text": "So."}]}
CLAIM = {"text": "So [1].", "verdict": "supported"}

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"claims": [{"text": "So [1].", "verdikt": "supported"}]},
     "labels.claims[0].verdikt: isn't a field of a label. Did you mean 'verdict'?"),
    ({"claims": [CLAIM], "cleen": True}, "labels.cleen: isn't a field of a label. Did you mean 'clean'?"),
    ({"claims": [CLAIM, CLAIM | {"colour": "red"}]},
     "labels.claims[1].colour: isn't a field of a label. Fields: text, verdict"),
    ({"claims": [{"text": "So [1].", "verdict": "suported"}]},
     "labels.claims[0].verdict: is 'suported', which isn't an allowed value. Use one of 'supported'"),
]  # fmt: skip


@pytest.mark.parametrize(("labels", "says"), WRONG)
def test_a_misspelled_key_or_verdict_of_a_label_is_refused_from_python_and_a_file(
    tmp_path: Path, labels: dict[str, Any], says: str
) -> None:
    record = {**CASE, "labels": labels}
    with pytest.raises(InputError) as refused:
        masis.Case(**record)
    assert says in str(refused.value)
    file = tmp_path / "cases.jsonl"
    file.write_text(json.dumps(record))
    (row,) = read_any(file)
    assert row.case is None
    assert says in str(row.problems[0])


def test_a_case_that_is_stored_with_other_keys_stays_readable() -> None:
    record = {**CASE, "labels": {"claims": [CLAIM | {"colour": "red"}], "odd": 1}}
    assert Case.from_stored(record).to_json_dict() == record
