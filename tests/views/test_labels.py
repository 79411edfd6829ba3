"""Labels in words: the passages, and the cause of a fault where the answer is at hand."""

from __future__ import annotations

from typing import Any

import pytest

from masis import run_audit
from masis.schema.case import Case
from masis.schema.labels import TargetLabel
from masis.schema.review import Decision
from masis.views.labels import flat_lines, label_lines

ANSWER = "The 🌉 bridge opened in 1950 [c1]. It is 120 metres long [c3]."
CASE = Case.model_validate(
    {
        "id": "bridge",
        "query": "When?",
        "answer": ANSWER,
        "evidence": [
            {"id": "c1", "text": "🌉 It opened in 1931."},
            {"id": "c2", "text": "It is 120 metres long."},
            {"id": "c3", "text": "It is in Halden."},
        ],
    }
)


def label(text: str, code: str, **more: Any) -> TargetLabel:
    at = ANSWER.index(text)
    place = {"start": at, "end": at + len(text), "text": text}
    return TargetLabel.model_validate({"target": "claim", "label": code, **place, **more})


def passage(chunk: str, text: str, stance: str) -> dict[str, Any]:
    found = next(each for each in CASE.evidence if each.id == chunk)
    at = found.text.index(text)
    return {
        "evidence_id": chunk,
        "start": at,
        "end": at + len(text),
        "text": text,
        "stance": stance,
    }


def decision(*labels: TargetLabel, **more: Any) -> Decision:
    about = {"reviewer": "Ada", "case_id": "bridge", "run_id": None, "verdict": "reject"}
    return Decision.model_validate({**about, "labels": labels, **more})


OPENED = label(
    "The 🌉 bridge opened in 1950",
    "contradicted",
    evidence=[passage("c1", "opened in 1931", "contradicts")],
)
LENGTH = label(
    "It is 120 metres long",
    "unsupported",
    evidence=[passage("c2", "It is 120 metres long.", "supports")],
    kind="quotation",
)


def test_a_label_names_its_passages_and_its_cause() -> None:
    opened, length = label_lines(decision(OPENED, LENGTH), CASE, None)
    assert opened.text == "claim “The 🌉 bridge opened in 1950”: contradicted"
    assert opened.details == [
        "c1 contradicts: “opened in 1931”",
        "derived cause: generation (the evidence settles it, and the answer says something else)",
    ]
    assert length.details == [
        "c2 supports: “It is 120 metres long.”",
        "kind of support: quotation",
        "derived cause: citation (the cited chunk isn't the one that settles it)",
    ]


def test_labels_on_chunks_and_the_case_and_reported_issues_have_words() -> None:
    labels = (
        TargetLabel(target="evidence", evidence_id="c1", label="irrelevant"),
        TargetLabel(target="evidence", evidence_id="c2", label="conflicting", conflicts_with="c1"),
        TargetLabel(target="case", label="passage_missing", note="its cost"),
        TargetLabel(target="answer", label="incomplete", severity="low", note="no cost"),
        label("[c3]", "misattributed", target="reference", right_reference="c2"),
    )
    lines = label_lines(decision(*labels), CASE, None)
    assert [line.reports for line in lines] == [False, False, False, True, False]
    assert flat_lines(lines) == [
        "chunk c1: irrelevant",
        "chunk c2: contradicts c1",
        "A needed passage is missing (its cost)",
        (
            "the whole answer: incomplete, low (no cost);"
            " derived cause: retrieval (no passage of the evidence settles it)"
        ),
        (
            "reference “[c3]”: misattributed; right reference: c2;"
            " derived cause: citation (the cited chunk isn't the one that settles it)"
        ),
    ]


def test_a_label_has_the_words_of_the_form_and_of_the_answer() -> None:
    answer = "It is grey (Source 1)."
    case = CASE.model_copy(update={"answer": answer})
    note = "the audit says names evidence"
    cited = TargetLabel(
        target="reference",
        start=answer.index("1"),
        end=answer.index("1") + 1,
        text="1",
        label="unsupported",
        note=note,
    )
    (line,) = label_lines(decision(cited), case, None)
    assert line.text == f"reference “(Source 1)”: does not support this ({note})"


@pytest.mark.parametrize(
    ("reported", "says"),
    [
        (label("120 metres", "unsupported", target="span", severity="low"), "supports the words"),
        (TargetLabel(target="answer", label="unsafe", severity="low"), "supports the answer"),
        (TargetLabel(target="answer", label="incomplete", severity="low"), "says what is missing"),
    ],
)
def test_a_passage_bears_on_the_answer_and_not_on_the_reported_issue(
    reported: TargetLabel, says: str
) -> None:
    evidence = [passage("c2", "It is 120 metres long.", "supports")]
    named = TargetLabel.model_validate(reported.model_dump() | {"evidence": evidence})
    (line,) = label_lines(decision(named), CASE, None)
    assert line.details[0] == f"c2 {says}: “It is 120 metres long.”"


def test_a_reference_cites_its_own_chunk_only() -> None:
    supporting = [passage("c3", "It is in Halden.", "supports")]
    cited = label("c1", "unsupported", target="reference", evidence=supporting)
    (line,) = label_lines(decision(cited), CASE, None)
    assert line.details[-1].startswith("derived cause: citation")


@pytest.mark.parametrize(
    "decided",
    [
        decision(OPENED, run_id="another", iteration=2),
        decision(OPENED.model_copy(update={"text": "x"})),
    ],
)
def test_no_cause_is_named_without_the_decided_answer(decided: Decision) -> None:
    (line,) = label_lines(decided, CASE, None)
    assert line.details == ["c1 contradicts: “opened in 1931”"]
    (line,) = label_lines(decided, None, None)
    assert line.details == ["c1 contradicts: “opened in 1931”"]
    assert label_lines(None, CASE, None) == []


def test_labels_on_a_revision_are_read_in_the_revision() -> None:
    run = run_audit(CASE)
    last = len(run.iterations)
    words = run.iterations[-1].answer[:10]
    target = TargetLabel(target="claim", start=0, end=10, text=words, label="unsupported")
    decided = decision(target, run_id=run.id, iteration=last)
    (line,) = label_lines(decided, CASE, run)
    assert line.details == ["derived cause: retrieval (no passage of the evidence settles it)"]
    beyond = decision(target, run_id=run.id, iteration=last + 1)
    assert label_lines(beyond, CASE, run)[0].details == []
