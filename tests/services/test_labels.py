"""Labels that name passages of the evidence, and labels on chunks and on the case."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from masis.errors import InputError
from masis.schema.case import Case
from masis.schema.causes import Cause, cause_of_label
from masis.schema.labels import TargetLabel
from masis.services import Workbench
from masis.services.desk import Desk
from masis.services.labels import read_labels

ANSWER = "The bridge opened in 1931 [c1]. It is 120 metres long [c3]."
CASE = Case.model_validate(
    {
        "id": "bridge",
        "query": "When did the bridge open?",
        "answer": ANSWER,
        "evidence": [
            {"id": "c1", "text": "The bridge was built by Ada. It is grey."},
            {"id": "c2", "text": "The bridge opened in 1932. In 1932, it was grey."},
        ],
    }
)
OPENED = {"text": "opened in 1931", "label": "contradicted"}


@pytest.fixture
def desk(bench: Workbench) -> Desk:
    """A desk on which Ada has rejected the answer."""
    bench.store.cases.add(CASE)
    desk = Desk(bench, reviewer="Ada")
    desk.decide("bridge", "reject", reason="contradicted")
    return desk


def read(record: dict[str, Any]) -> TargetLabel:
    return read_labels(record, ANSWER, CASE.evidence)[0]


def test_a_label_names_the_passages_that_contradict_it(desk: Desk) -> None:
    passage = {"evidence_id": "c2", "text": "opened in 1932", "stance": "contradicts"}
    entry = desk.label("bridge", [OPENED | {"evidence": [passage], "note": "another year"}])
    assert entry.decision is not None
    (label,) = entry.decision.labels
    assert (label.target, label.text) == ("claim", "opened in 1931")
    (found,) = label.evidence
    assert CASE.evidence[1].text[found.start : found.end] == found.text == "opened in 1932"
    assert label.passages("contradicts") == (found,)
    assert label.passages("supports") == ()
    assert desk.workbench.store.decisions.verify().intact


def test_a_wrong_citation_names_the_right_one_and_the_kind_of_support(desk: Desk) -> None:
    entry = desk.label(
        "bridge",
        {
            "text": "[c3]",
            "target": "reference",
            "label": "misattributed",
            "right_reference": "c1",
            "kind": "paraphrase",
            "evidence": [{"evidence_id": "c1", "text": "It is grey"}],
        },
    )
    assert entry.decision is not None
    (label,) = entry.decision.labels
    assert (label.right_reference, label.kind) == ("c1", "paraphrase")


def test_chunks_and_the_case_are_labelled(desk: Desk) -> None:
    entry = desk.label(
        "bridge",
        [
            {"evidence_id": "c1", "label": "irrelevant"},
            {"evidence_id": "c2", "label": "conflicting", "conflicts_with": "c1"},
            {"label": "passage_missing", "note": "its length"},
        ],
    )
    assert entry.decision is not None
    assert [label.target for label in entry.decision.labels] == ["evidence", "evidence", "case"]


@pytest.mark.parametrize(
    ("record", "field", "says"),
    [
        ({"evidence_id": "c4", "label": "relevant"}, "evidence_id", "Use one of c1, c2"),
        (OPENED | {"right_reference": "x"}, "right_reference", "isn't evidence of this case"),
        (OPENED | {"evidence": {"evidence_id": "c2", "text": "1932"}}, "text", "more than once"),
        (OPENED | {"evidence": {"evidence_id": "c2", "text": "1933"}}, "text", "isn't in evidence"),
        (OPENED | {"evidence": {"evidence_id": "c2", "txt": "1932"}}, "txt", "Did you mean 'text'"),
        (OPENED | {"evidence": {"evidence_id": "c2"}}, "text", "is missing"),
        (OPENED | {"evidence": "c2"}, "evidence", "is text"),
        (OPENED | {"evidence": ["c2"]}, "evidence[0]", "is text"),
        (OPENED | {"start": 4}, "text", "isn't at start"),
        (OPENED | {"start": -1}, "start", "is -1"),
        (OPENED | {"start": True}, "start", "true"),
        (OPENED | {"evidnce": []}, "evidnce", "Did you mean 'evidence'"),
        (OPENED | {"kind": "quotation"}, "", "needs a passage that supports"),
        (OPENED | {"kind": "guess"}, "kind", "quotation"),
        ({"evidence_id": "c1", "label": "conflicting"}, "", "needs the chunk"),
        (
            {"evidence_id": "c1", "label": "conflicting", "conflicts_with": "c1"},
            "",
            "conflict with itself",
        ),
    ],
)
def test_a_wrong_field_is_named_with_a_hint(
    desk: Desk, record: dict[str, Any], field: str, says: str
) -> None:
    with pytest.raises(InputError, match=says) as caught:
        desk.label("bridge", record)
    assert caught.value.field is not None
    assert caught.value.field.startswith("labels[0]")
    assert caught.value.field.endswith(field)


def test_a_stored_passage_must_be_at_its_place(desk: Desk) -> None:
    own = desk.workbench.reviews.individual("bridge")[0].decision
    assert own is not None
    shifted = read(OPENED | {"evidence": {"evidence_id": "c2", "text": "opened in 1932"}})
    passage = shifted.evidence[0].model_copy(update={"start": 0, "end": 14})
    label = shifted.model_copy(update={"evidence": (passage,)})
    again = own.model_copy(update={"labels": (label,), "token": None})
    with pytest.raises(
        InputError, match="at characters 0 to 14 evidence 'c2' has 'The bridge ope'"
    ):
        desk.workbench.reviews.submit(desk.actor, again)


@pytest.mark.parametrize(
    "wrong",
    [
        {"target": "answer", "label": "incomplete"},
        {"target": "case", "label": "passage_missing", "evidence_id": "c1"},
        {"target": "evidence", "label": "relevant"},
        {"target": "claim", "label": "supported"},
        {"target": "case", "label": "passage_missing", "text": "words", "start": 0, "end": 5},
        {"target": "case", "label": "passage_missing", "right_reference": "c1"},
    ],
)
def test_a_label_has_only_what_its_target_has(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        TargetLabel.model_validate(wrong)


LENGTH = {"text": "It is 120 metres long"}
SUPPORTED_BY_C1 = {"evidence": {"evidence_id": "c1", "text": "It is grey"}}
DENIED_BY_C2 = {
    "evidence": {"evidence_id": "c2", "text": "opened in 1932", "stance": "contradicts"}
}


@pytest.mark.parametrize(
    ("record", "cited", "missing", "cause"),
    [
        (LENGTH | {"label": "supported"} | SUPPORTED_BY_C1, ["c3"], False, None),
        (LENGTH | {"label": "unverifiable"}, [], True, None),
        (LENGTH | {"label": "unsupported"}, ["c3"], False, "retrieval"),
        (LENGTH | {"label": "unsupported"} | SUPPORTED_BY_C1, ["c3"], False, "citation"),
        (LENGTH | {"label": "partial"} | SUPPORTED_BY_C1, ["c1"], False, "generation"),
        (LENGTH | {"label": "contradicted"} | DENIED_BY_C2, ["c3"], False, "generation"),
        (LENGTH | {"label": "contradicted"}, ["c3"], False, "generation"),
        (LENGTH | {"label": "contradicted"}, ["c3"], True, "retrieval"),
        (LENGTH | {"label": "unsupported", "right_reference": "c1"}, ["c3"], True, "citation"),
        (
            {
                "text": "[c3]",
                "target": "reference",
                "label": "contradicts",
                "right_reference": "c3",
            },
            ["c3"],
            False,
            "generation",
        ),
        (
            {"text": "[c3]", "target": "reference", "label": "unsupported"},
            ["c3"],
            False,
            "citation",
        ),
        ({"label": "unsafe", "severity": "critical"}, ["c3"], False, None),
        ({"label": "incomplete", "severity": "low"}, ["c3"], False, None),
        ({"text": "[c3]", "target": "reference", "label": "fabricated"}, [], False, "citation"),
        (LENGTH | {"label": "uncited", "target": "sentence"}, [], False, "citation"),
        (LENGTH | {"label": "uncited", "target": "sentence"}, [], True, "citation"),
        (LENGTH | {"label": "exempt", "target": "sentence"}, [], False, None),
        (LENGTH | {"label": "rude", "severity": "low"}, ["c3"], False, None),
        (LENGTH | {"label": "rude", "severity": "low"} | DENIED_BY_C2, ["c1"], False, "generation"),
        ({"label": "incomplete", "severity": "low"}, [], True, "retrieval"),
        ({"label": "incomplete", "severity": "low"} | SUPPORTED_BY_C1, ["c3"], True, "generation"),
    ],
)
def test_the_cause_of_a_fault_follows_from_its_passages(
    record: dict[str, Any], cited: list[str], missing: bool, cause: Cause | None
) -> None:
    assert cause_of_label(read(record), cited, passage_missing=missing) == cause
