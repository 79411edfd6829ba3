"""The names of labels: unknown ones are refused with a suggestion on every way in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import masis
from masis.datasets.readers.decisions import read_decisions
from masis.errors import InputError
from masis.schema.actor import Actor
from masis.schema.labels import LABEL_CHOICES, TargetLabel
from masis.schema.review import Decision
from masis.schema.team import LabelType, LabelTypes, QueuePolicy
from masis.services import Workbench
from masis.services.desk import Desk
from masis.services.label_names import OTHER_LABELS, use_known_names
from masis.store import Store

CLEO = Actor(name="Cleo")
TYPES = LabelTypes(types=(LabelType(name="Too long"), LabelType(name="unsafe")))


@pytest.fixture
def desk(store: Store) -> Desk:
    """Ada's desk on five audited cases."""
    return Desk(Workbench(store, masis.Settings(), store.path), reviewer="Ada")


def label(name: str, **changes: Any) -> TargetLabel:
    words = {"target": "claim", "start": 0, "end": 2, "text": "It"}
    return TargetLabel.model_validate({**words, "label": name, **changes})


def issue(name: str) -> TargetLabel:
    return label(name, target="span", severity="low")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (label("suported"), r"is 'suported', which isn't a label of a claim\. Did you mean 'supp"),
        (label("quux"), "label of a claim. Use one of supported, partial, contradicted,"),
        (label("hallucination"), "Use contradicted if the evidence says something else, or"),
        (label("Neutral"), "or unverifiable if it can't be checked"),
        (label("too_long"), "It's one of the team's types of issues. Add a severity"),
        (label("fabricated"), "It's a label of a reference. Use one of supported"),
        (label("quux", target="reference"), "label of a reference. Use one of valid, fabricated"),
        (issue("tolong"), r"'tolong' isn't a label type of version 0\. Did you mean 'Too long'\?"),
        (issue("supported"), "'supported' isn't a label type of version 0. Types: Too long, uns"),
    ],
)
def test_an_unknown_label_is_refused_with_a_suggestion(given: TargetLabel, says: str) -> None:
    with pytest.raises(InputError, match=rf"^labels\[0\]\.label: .*{says}"):
        use_known_names([given], TYPES)


def test_a_label_on_a_span_reports_an_issue() -> None:
    with pytest.raises(InputError, match=r"labels\[0\]\.severity: is missing: a label on a span"):
        use_known_names([label("unsafe", target="span")], TYPES)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (label("Supported"), "supported"),
        (label("NOT_SUPPORTED"), "unsupported"),
        (label("entailed"), "supported"),
        (label("missing-citation", target="sentence"), "uncited"),
        (issue("too LONG"), "Too long"),
    ],
)
def test_other_words_with_a_certain_meaning_are_recorded_under_our_name(
    given: TargetLabel, name: str
) -> None:
    assert use_known_names([given], TYPES) == (given.model_copy(update={"label": name}),)


def test_each_word_of_other_tools_has_one_meaning() -> None:
    words = [(other.target, word) for other in OTHER_LABELS for word in other.words]
    assert len(words) == len(set(words))
    for other in OTHER_LABELS:
        assert (other.label in LABEL_CHOICES[other.target]) != bool(other.hint)
        assert not {word for word in other.words if word in LABEL_CHOICES[other.target]}


def test_errors_count_from_the_first_new_label() -> None:
    earlier = [label("agree"), label("supported")]
    with pytest.raises(InputError, match=r"^labels\[1\]\.label: is 'quux'"):
        use_known_names([*earlier, label("partial"), label("quux")], TYPES, kept=2)
    assert use_known_names(earlier, TYPES, kept=2) == tuple(earlier)


def test_a_label_is_added_to_a_decision_with_labels_of_an_older_version(desk: Desk) -> None:
    old = Decision(
        reviewer="Ada",
        case_id="case-0",
        run_id="run-0",
        iteration=1,
        verdict="escalate",
        labels=(label("agree"),),
    )
    desk.workbench.store.decisions.append(old)
    with pytest.raises(InputError, match=r"^labels\[0\]\.label: is 'quux'"):
        desk.label("case-0", [{"text": "grey", "label": "quux"}])
    entry = desk.label("case-0", [{"text": "grey", "label": "partial"}])
    assert [label.label for label in entry.decision.labels] == ["agree", "partial"]


def test_a_label_on_words_is_about_the_part_that_it_can_name(desk: Desk) -> None:
    labels = [
        {"text": "1932", "label": "Entailed"},
        {"text": "[7]", "label": "fabricated"},
        {"text": "It is painted grey", "label": "missing citation"},
    ]
    entry = desk.decide("case-0", "reject", reason="uncited", labels=labels)
    assert [(label.target, label.label) for label in entry.decision.labels] == [
        ("claim", "supported"),
        ("reference", "fabricated"),
        ("sentence", "uncited"),
    ]


def test_an_adjudication_and_a_row_refuse_unknown_labels(desk: Desk) -> None:
    wrong = [{"text": "grey", "label": "unsuported"}]
    says = r"labels\[0\]\.label: is 'unsuported', .*Did you mean 'unsupported'"
    (row,) = desk.decide_all([{"case": "case-1", "verdict": "escalate", "labels": wrong}])
    with pytest.raises(InputError, match=says):
        raise row.error
    (row,) = desk.decide_all([{"case": "case-1", "verdict": "escalate", "lables": []}])
    assert str(row.error) == "lables: isn't a field of a decision. Did you mean 'labels'?"
    desk.workbench.team.put_in_force(CLEO, QueuePolicy(reviewers=2, rule="adjudicated"))
    desk.decide("case-0", "approve")
    Desk(desk.workbench, reviewer="Ben").decide("case-0", "reject", reason="unclear")
    cleo = Desk(desk.workbench, reviewer="Cleo")
    with pytest.raises(InputError, match=says):
        cleo.adjudicate("case-0", "reject", reason="unclear", labels=wrong)


def test_label_studio_and_argilla_labels_are_translated_or_refused(
    desk: Desk, tmp_path: Path
) -> None:
    def region(words: str, name: str, *meta: str) -> dict[str, Any]:
        value = {"text": words, "labels": [name]}
        return {"from_name": "label", "value": value, "meta": {"text": list(meta)}}

    verdict = {"from_name": "verdict", "value": {"choices": ["approve"]}}
    whole = {
        "from_name": "answer",
        "value": {"choices": ["incomplete"]},
        "meta": {"text": ["reviewer: Bo", "severity: low"]},
    }
    rows = [
        {
            "data": {"case_id": f"case-{number}"},
            "annotations": [{"result": [verdict, *regions]}],
        }
        for number, regions in enumerate(
            (
                [region("grey", "not supported"), whole],
                [region("grey", "unsafe", "severity: medium", "note: no")],
                [region("grey", "Hallucination")],
                [region("grey", "unsafe")],
            )
        )
    ]
    file = tmp_path / "annotated.json"
    file.write_text(json.dumps(rows))
    first, second, third, fourth = desk.decide_all(read_decisions(file))
    assert [
        (label.target, label.label, label.severity) for label in first.entry.decision.labels
    ] == [
        ("claim", "unsupported", None),
        ("answer", "incomplete", "low"),
    ]
    assert [(issue.label, issue.note) for issue in second.entry.decision.reported] == [
        ("unsafe", "no")
    ]
    assert "labels[0].label: is 'Hallucination'" in str(third.error)
    assert "Add a severity to report an issue" in str(fourth.error)
