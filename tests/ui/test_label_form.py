"""The labels of the decision form: what is read of a post, and what the page offers."""

from __future__ import annotations

from typing import Any

import pytest

from masis import run_audit
from masis.schema.actor import Actor
from masis.schema.case import Case
from masis.schema.labels import LABEL_CHOICES, MOST_PASSAGES, LabelPassage, TargetLabel
from masis.schema.review import Decision
from masis.schema.team import QueuePolicy
from masis.services import Workbench
from masis.services.drafts import read_form
from masis.services.records import CaseFilter
from masis.ui.review import decision_form as forms
from masis.ui.review.decision_form import FormFields
from masis.ui.review.desk import OpenDesk, Place
from masis.ui.review.label_form import (
    IMPLIED_LABELS,
    evidence_labels,
    label_rows,
    label_words,
    target_labels,
)
from masis.ui.team.final_desk import differences
from tests.reviewing import ADA, decide

CASE = Case.model_validate(
    {
        "id": "bridge",
        "query": "When did the bridge open?",
        "answer": "The 🌉 bridge opened in 1950 [c1]. It is 120 metres long [c3].",
        "evidence": [
            {"id": "c1", "text": "🌉 It is old. The 🌉 bridge opened in 1931. Ada built it."},
            {"id": "c2", "text": "It is 120 metres long."},
            {"id": "c3", "text": "The bridge is in Halden."},
        ],
    }
)
PASSAGE = {"evidence_id": "c1", "start": 0, "end": 1, "text": "🌉", "stance": "supports"}
KEY = "claim:0-30"


def read(**posted: Any) -> FormFields:
    return read_form(FormFields, posted)


def labels_read(label: dict[str, Any]) -> dict[str, Any]:
    fields = read(labels={"run/1": {KEY: label}})
    return {key: each.model_dump() for key, each in fields.labels.get("run/1", {}).items()}


def test_a_label_with_evidence_survives_the_draft() -> None:
    posted = {
        "label": "partial",
        "evidence": [PASSAGE],
        "right_reference": "c2",
        "kind": "inference",
    }
    assert labels_read(posted) == {KEY: posted | {"evidence": (PASSAGE,)}}
    fields = read(
        labels={"run/1": {KEY: posted}},
        chunks={"c1": {"label": "conflicting", "conflicts_with": "c2"}},
        missing="",
        reported={"d": [{"type": "other", "severity": "low", "evidence": [PASSAGE]}]},
    )
    assert read_form(FormFields, fields.model_dump(mode="json")) == fields
    assert fields.missing == ""
    assert not read(missing="").empty
    assert fields.reported["d"][0].evidence[0].text == "🌉"


@pytest.mark.parametrize(
    "label",
    [
        "partial",
        {"label": "valid"},  # a label of references
        {"label": "no such"},
        {"label": ["partial"]},
        {"evidence": [PASSAGE]},
        None,
    ],
)
def test_an_invalid_label_is_dropped(label: Any) -> None:
    assert labels_read(label) == {}
    assert read(labels={"run/1": {KEY: label}}).empty


@pytest.mark.parametrize(
    "wrong",
    [
        {"end": 2},  # one character, but two UTF-16 units: a browser that counts those is caught
        {"start": -1},
        {"start": True, "end": 2},
        {"text": ""},
        {"evidence_id": ""},
        {"stance": "doubts"},
        {"text": "\ud83c"},
    ],
)
def test_a_passage_with_wrong_offsets_is_dropped_and_its_label_kept(wrong: dict[str, Any]) -> None:
    read = labels_read({"label": "partial", "evidence": [PASSAGE | wrong, PASSAGE]})
    assert [each["start"] for each in read[KEY]["evidence"]] in ([0], [0, 0])
    assert all(each["text"] == "🌉" for each in read[KEY]["evidence"])


def test_the_number_of_passages_is_limited() -> None:
    read = labels_read({"label": "partial", "evidence": [PASSAGE] * (MOST_PASSAGES + 5)})
    assert len(read[KEY]["evidence"]) == MOST_PASSAGES


def test_labels_on_chunks_are_read_and_recorded() -> None:
    fields = read(
        chunks={
            "c1": {"label": "irrelevant"},
            "c2": {"label": "conflicting"},  # with which?
            "c3": {"label": "conflicting", "conflicts_with": "c3"},
            "c4": {"label": "conflicting", "conflicts_with": "c1"},
            "c5": {"label": "relevant", "conflicts_with": "c1"},
            "c6": 7,
        },
        missing=" its cost ",
    )
    assert list(fields.chunks) == ["c1", "c4"]
    made = list(evidence_labels(fields.chunks, fields.missing))
    assert [(each.label, each.evidence_id, each.conflicts_with, each.note) for each in made] == [
        ("irrelevant", "c1", None, ""),
        ("conflicting", "c4", "c1", ""),
        ("passage_missing", None, None, "its cost"),
    ]
    assert list(evidence_labels({}, None)) == []


def test_the_audits_passage_is_offered_with_the_right_reference() -> None:
    iteration = run_audit(CASE).iterations[0]
    rows = {row["text"]: row for row in label_rows(iteration, CASE)}
    opened = next(row for row in rows.values() if row["verdict"] == "contradicted")
    assert [(each["text"], each["stance"]) for each in opened["offered"]] == [
        ("The 🌉 bridge opened in 1931.", "contradicts")
    ]
    texts = {chunk.id: chunk.text for chunk in CASE.evidence}
    for row in rows.values():
        for each in row["offered"]:
            assert texts[each["evidence_id"]][each["start"] : each["end"]] == each["text"]
        if row["verdict"] in ("unverifiable", "unsupported") and row["kind"] == "claim":
            assert row["offered"] == []


def test_a_kind_without_a_supporting_passage_is_left_out() -> None:
    iteration = run_audit(CASE).iterations[0]
    row = label_rows(iteration, CASE)[0]
    against = PASSAGE | {"stance": "contradicts"}
    chosen = read(
        labels={
            "r/1": {
                row["key"]: {"label": "contradicted", "evidence": [against], "kind": "quotation"}
            }
        }
    ).labels["r/1"]
    (made,) = target_labels(iteration, chosen)
    assert (made.kind, made.evidence[0].stance) == (None, "contradicts")


def test_each_implied_label_is_one_of_its_target() -> None:
    for kind, implied in IMPLIED_LABELS.items():
        assert set(implied.values()) <= set(LABEL_CHOICES[kind])
    words = label_words()
    assert set(words["wrong_references"]) < set(LABEL_CHOICES["reference"])
    assert [code for code, *_ in words["choices"]["evidence"]] == list(LABEL_CHOICES["evidence"])


def test_an_undone_decision_fills_the_form_with_its_labels() -> None:
    run = run_audit(CASE)
    row = label_rows(run.iterations[0], CASE)[0]
    posted = {"label": "partial", "evidence": [PASSAGE], "right_reference": "c2", "kind": None}
    base = forms.label_base(run, 0)
    fields = read(
        verdict="reject",
        labels={base: {row["key"]: posted}},
        chunks={"c1": {"label": "relevant", "conflicts_with": None}},
        missing="its cost",
    )
    about = {"case_id": "bridge", "reviewer": "Ada", "token": "t", "machine_shown": ()}
    decision = forms.decision_of(fields, run=run, index=0, **about)
    again = read(**forms.fields_of_labels(decision, "d"))
    assert (again.labels, again.chunks, again.missing) == (
        fields.labels,
        fields.chunks,
        fields.missing,
    )


def test_nothing_of_a_hidden_audit_is_offered(bench: Workbench) -> None:
    bench.cases.add(ADA, [CASE])
    bench.audits.audit(ADA, CASE)

    def shown() -> dict[str, Any]:
        desk = OpenDesk.open(bench, ADA, Place(case=CASE.id), CaseFilter(), lambda _: None)
        return desk.data()["labels"]

    assert shown()["rows"]
    bench.team.put_in_force(ADA, QueuePolicy(machine="after"))
    hidden = shown()
    assert (hidden["base"], hidden["rows"]) == ("", [])
    assert hidden["choices"]["evidence"]  # chunks are labelled all the same


def test_others_labels_are_hidden_until_all_decisions_are_made(bench: Workbench) -> None:
    bench.team.put_in_force(ADA, QueuePolicy(reviewers=2))
    bench.cases.add(ADA, [CASE])
    bench.audits.audit(ADA, CASE)
    desk = OpenDesk.open(bench, ADA, Place(case=CASE.id), CaseFilter(), lambda _: None)
    row = label_rows(desk.run.iterations[0], CASE)[0] if desk.run else {}
    posted = {"label": "partial", "evidence": [PASSAGE]}
    fields = read(
        verdict="reject",
        reason="contradicted",
        labels={forms.label_base(desk.run, 0): {row["key"]: posted}},
        missing="its cost",
    )
    decision = forms.decision_of(
        fields,
        case_id=CASE.id,
        run=desk.run,
        index=0,
        reviewer="Ada",
        token="t",
        machine_shown=("marks",),
    )
    bench.reviews.submit(ADA, decision)

    def history(name: str) -> list[list[str]]:
        opened = OpenDesk.open(
            bench, Actor(name=name), Place(case=CASE.id), CaseFilter(), lambda _: None
        )
        rows = opened.data()["history"]
        return [[line["text"] for line in each["labels"]] for each in rows if each["labels"]]

    assert history("Ben") == []
    assert history("Ada")[0][-1] == "A needed passage is missing (its cost)"
    decide(bench, CASE.id, "approve", "Ben")
    assert history("Ben") == history("Ada")


def test_adjudicators_see_differing_labels_on_chunks_and_passages() -> None:
    labels = [
        TargetLabel(target="evidence", evidence_id="c1", label="irrelevant"),
        TargetLabel(target="evidence", evidence_id="c2", label="relevant"),
    ]
    claim = TargetLabel(
        target="claim",
        start=0,
        end=5,
        text="The 🌉",
        label="partial",
        evidence=(LabelPassage.model_validate(PASSAGE),),
    )
    about = {"case_id": "bridge", "run_id": None, "verdict": "reject"}

    def of(*given: TargetLabel, reviewer: str = "Ada") -> Decision:
        return Decision.model_validate({**about, "reviewer": reviewer, "labels": given})

    same = of(*labels, claim), of(claim, *labels, reviewer="Ben")
    assert differences(same) == ()
    other = labels[0].model_copy(update={"label": "relevant"})
    bare = claim.model_copy(update={"evidence": ()})
    found = differences((of(*labels, claim), of(other, labels[1], bare, reviewer="Ben")))
    assert found == ("label of chunk c1", "claim “The 🌉”")
