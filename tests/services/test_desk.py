"""The desk by program: the rules, rights and log of the page, one decision at a time or a file of
them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import masis
from masis.cli.options import operator
from masis.datasets.readers.decisions import read_decisions
from masis.errors import CaseConflict, CaseHeld, InputError, StaleVersion, UnknownRecord
from masis.schema.actor import Actor
from masis.schema.review import SHOWN_UNKNOWN
from masis.schema.team import QueuePolicy
from masis.services import Workbench
from masis.services.desk import SHOWN, Desk
from masis.settings.environment import UNKNOWN_USER, account_name
from masis.store import Store
from tests.audit.factories import issue
from tests.store.factories import a_case, a_run, an_iteration

ANSWER = "It was opened in 1932 [1]. It is painted grey [7]."
GRACE = Actor(name="Grace")


@pytest.fixture
def desk(store: Store) -> Desk:
    """Ada's desk on five audited cases."""
    return Desk(Workbench(store, masis.Settings(), store.path), reviewer="Ada")


def test_a_desk_works_without_an_account_name(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_entry(uid: int) -> None:
        raise KeyError(f"getpwuid(): uid not found: {uid}")

    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", no_entry)
    desk = Desk(Workbench(store, masis.Settings(), store.path))
    assert desk.actor.name == operator().name == UNKNOWN_USER
    entry = desk.decide("case-0", "reject", reason="unsupported")
    assert entry.decision is not None
    assert entry.decision.reviewer == UNKNOWN_USER
    # what the environment names may hold anything
    monkeypatch.setenv("USER", "Ada\x1b[31m \udc80" + "a" * 300)
    assert account_name() == ("Ada[31m " + "a" * 300)[:200]


def test_a_desk_closes_only_a_database_it_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[Workbench] = []
    close = Workbench.close

    def note_close(workbench: Workbench) -> None:
        closed.append(workbench)
        close(workbench)

    monkeypatch.setattr(Workbench, "close", note_close)
    with Desk(tmp_path / "own.db", reviewer="Ada") as own:
        assert own.queue() == ()
    assert closed == [own.workbench]
    with Workbench.open(tmp_path / "given.db").store as store:
        given = Workbench(store, masis.Settings(), store.path)
        with Desk(given, reviewer="Ada") as desk:
            assert desk.queue() == ()
        desk.close()
        assert closed == [own.workbench]
        assert Desk(given, reviewer="Grace").queue() == ()


def test_a_decision_records_what_the_desk_showed(desk: Desk) -> None:
    first = desk.queue(limit=1)[0]
    assert desk.show(first.id).case.answer == ANSWER
    entry = desk.decide(first.id, "reject", reason="unsupported", note="see [7]")
    assert entry.decision is not None
    decision = entry.decision
    assert (decision.verdict, decision.reviewer, decision.run_id, decision.iteration) == (
        "reject",
        "Ada",
        "run-0",
        1,
    )
    assert (decision.reason, decision.extra["reason_code"]) == (
        "Says more than the evidence",
        "unsupported",
    )
    assert (decision.machine_shown, decision.extra["answer"]) == (SHOWN, "the original answer")
    assert first.id not in {row.id for row in desk.queue()}
    assert desk.log(first.id) == (entry,)
    desk.undo(entry.id)
    assert first.id in {row.id for row in desk.queue()}


def test_desk_results_have_a_one_line_repr(desk: Desk) -> None:
    row, *_ = desk.queue()
    view = desk.show(row.id)
    entry = desk.decide(row.id, "reject", reason="unsupported")
    assert str(row).startswith(f"<CaseSummary of {row.id!r}: ")
    assert str(view).startswith(f"<CaseView of {row.id!r}: ")
    assert f": reject on {row.id!r} by {desk.actor.name}" in str(entry)
    assert all("\n" not in str(value) and len(str(value)) < 500 for value in (row, view, entry))


def test_a_case_not_shown_on_the_desk_is_never_a_blind_decision(desk: Desk) -> None:
    unknown = desk.decide("case-0", "escalate")
    blind = desk.decide("case-1", "escalate", machine_shown=())
    assert (unknown.decision.machine_shown, blind.decision.machine_shown) == ((SHOWN_UNKNOWN,), ())


def test_a_blind_policy_hides_audit_results_on_the_desk(
    desk: Desk,
) -> None:
    desk.workbench.team.put_in_force(Actor(name="lead"), QueuePolicy(machine="after"))
    assert desk.show("case-0").run is None
    assert {row.quality for row in desk.queue()} == {None}
    own = desk.decide("case-0", "escalate")
    (of_file,) = desk.decide_all([{"case": "case-1", "verdict": "escalate"}])
    assert own.decision.machine_shown == ()
    assert of_file.entry.decision.machine_shown == (SHOWN_UNKNOWN,)


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        (("case-0", "override"), InputError, "Give the corrected answer (--corrected-answer), or"),
        (("case-0", "override", {"corrected_answer": ANSWER, "reason": "unclear"}), InputError,
         "changes nothing in the answer"),
        (("case-0", "reject"), InputError,
         "reason: a reason is missing: a rejection needs one. Use one of fabricated_citation"),
        (("case-0", "approve", {"corrected_answer": "x"}), InputError,
         "corrected_answer: a corrected answer needs the verdict override"),
        (("case-0", "aprove"), InputError, "verdict: is 'aprove'"),
        (("case-0", "rejected", {"reason": "unsupported"}), InputError,
         ("verdict: is 'rejected', which isn't a verdict. Use one of approve, override, reject, "
         "escalate")),
        (("case-0", "approve", {"iteration": 2}), InputError, ("iteration: is 2. The audit has "
                                                              "answers 1 to 1")),
        (("nobody", "approve"), UnknownRecord, "there is no case 'nobody'"),
        (("case-0", "approve", {"version": 0}), StaleVersion, "case-0"),
        (("case-0", "approve", {"labels": [{"text": "grey", "label": "partial"}]}), None, ""),
        (("case-0", "approve", {"labels": [{"text": "grey", "label": ""}]}), InputError,
         "labels[0].label: is '', which isn't a label of a claim. Use one of supported, partial"),
        (("case-0", "approve", {"labels": [{"text": "blue", "label": "x"}]}), InputError, "isn't in the answer"),
        (("case-0", "approve", {"labels": [{"text": "It", "label": "x"}]}), InputError, "more than once"),
        (("case-0", "approve", {"labels": ["grey"]}), InputError, "labels[0]: is text"),
    ],
)  # fmt: skip
def test_the_desk_rejects_what_the_page_rejects(
    desk: Desk, arguments: tuple[Any, ...], error: type[Exception] | None, says: str
) -> None:
    case, verdict, *rest = arguments
    if error is None:
        assert desk.decide(case, verdict, **rest[0])
        return
    with pytest.raises(error) as raised:
        desk.decide(case, verdict, **(rest[0] if rest else {}))
    assert says in str(raised.value)
    assert desk.log() == ()


def test_approving_serious_issues_needs_an_acknowledgement(store: Store) -> None:
    desk = Desk(Workbench(store, masis.Settings(), store.path), reviewer="Ada")
    case = a_case("serious")
    store.cases.add(case)
    iteration = an_iteration().model_copy(update={"issues": (issue(severity="high"),)})
    store.runs.finish(a_run(case, "run-serious", iterations=(iteration,), needs_review=True))
    with pytest.raises(InputError, match="1 serious issue open"):
        desk.decide("serious", "approve")
    entry = desk.decide("serious", "approve", acknowledge=True)
    assert len(entry.decision.extra["issues_seen"]) == 1


def test_a_case_leased_by_another_is_rejected(desk: Desk) -> None:
    desk.workbench.team.claim(GRACE, "case-0")
    with pytest.raises(CaseHeld):
        desk.decide("case-0", "escalate")
    assert "case-0" not in {row.id for row in desk.queue()}


def test_a_case_changed_since_shown_is_rejected(desk: Desk) -> None:
    desk.show("case-0")
    Desk(desk.workbench, reviewer="Grace").decide("case-0", "escalate")
    with pytest.raises(StaleVersion):
        desk.decide("case-0", "escalate")


def test_adding_labels_creates_a_new_entry(desk: Desk) -> None:
    with pytest.raises(InputError, match="has no decision of yours"):
        desk.label("case-0", [{"text": "grey", "label": "unsupported"}])
    first = desk.decide(
        "case-0", "reject", reason="unsupported", labels=[{"text": "1932", "label": "supported"}]
    )
    second = desk.label(
        "case-0",
        [
            {"text": "grey", "label": "unsupported"},
            {"label": "fabricated citation", "severity": "high"},
        ],
    )
    assert [(label.target, label.text, label.label) for label in second.decision.labels] == [
        ("claim", "1932", "supported"),
        ("claim", "grey", "unsupported"),
        ("answer", "", "fabricated citation"),
    ]
    assert (second.decision.verdict, second.decision.reason) == (
        first.decision.verdict,
        first.decision.reason,
    )
    with pytest.raises(InputError, match="'nonsense' isn't a label type"):
        desk.label("case-0", [{"label": "nonsense", "severity": "high"}])


ROWS: list[dict[str, Any]] = [
    {"case": "case-0", "verdict": "approve"},
    {"case": "case-1", "verdict": "aprove"},
    {"case": "nobody", "verdict": "approve"},
    {"case": "case-2", "verdict": "reject", "reason": "unclear", "reviewer": "Grace"},
    {"case": "case-3", "verdict": "approve", "colour": "red"},
]


def test_a_file_yields_a_result_per_row_and_a_dry_run_records_nothing(desk: Desk) -> None:
    tried = list(desk.decide_all(ROWS, dry_run=True))
    assert desk.log() == ()
    assert {row.state for row in desk.queue()} == {"needs_review"}
    done = list(desk.decide_all(ROWS))
    assert (
        [result.entry is not None for result in done]
        == [result.entry is not None for result in tried]
        == [True, False, False, True, False]
    )
    assert [str(result.error)[:30] for result in done if result.error] == [
        "verdict: is 'aprove', which is",
        "there is no case 'nobody'. Imp",
        "colour: isn't a field of a dec",
    ]
    assert [entry.decision.reviewer for entry in reversed(desk.log()) if entry.decision] == [
        "Ada",
        "Grace",
    ]
    again = list(desk.decide_all(ROWS))
    assert [result.entry and result.entry.id for result in again] == [
        result.entry and result.entry.id for result in done
    ]
    assert len(desk.log()) == 2


REGION = {"start": 45, "end": 49, "text": "grey", "labels": ["unsupported"]}
LABEL_STUDIO = [
    {
        "data": {"case_id": "case-0", "text": "..."},
        "annotations": [
            {
                "completed_by": {"email": "bo@lab"},
                "result": [
                    {"from_name": "verdict", "type": "choices", "value": {"choices": ["Reject"]}},
                    {
                        "from_name": "reason",
                        "type": "textarea",
                        "value": {"text": ["Nothing says so"]},
                    },
                    {"from_name": "label", "type": "labels", "value": REGION},
                ],
            },
            {"was_cancelled": True, "result": []},
        ],
    }
]
ARGILLA = [
    {
        "id": "r1",
        "fields": {"answer": ANSWER},
        "metadata": {"case_id": "case-1"},
        "responses": {
            "verdict": [
                {"value": "approve", "user_id": "u1"},
                {"value": "reject", "user_id": "u2", "status": "draft"},
            ],
            "spans": [
                {"value": [{"start": 41, "end": 45, "label": "unsupported"}], "user_id": "u1"}
            ],
        },
    },
    {
        "id": "case-2",
        "fields": {"text": "x"},
        "responses": [{"user_id": "u2", "values": {"verdict": {"value": "escalate"}}}],
    },
]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        (
            "ls.json",
            json.dumps(LABEL_STUDIO),
            [
                {
                    "case": "case-0", "verdict": "reject", "reason": "Nothing says so", "reviewer": "bo@lab",
                    "labels": [{"text": "grey", "start": 45, "label": "unsupported"}],
                }
            ],
        ),
        (
            "argilla.json",
            json.dumps(ARGILLA),
            [
                {
                    "case": "case-1", "verdict": "approve", "reviewer": "Argilla user u1",
                    "labels": [{"text": "grey", "start": 41, "label": "unsupported"}],
                },
                {"case": "case-2", "verdict": "escalate", "reviewer": "Argilla user u2"},
            ],
        ),
        (
            "d.csv",
            "case,verdict,reason,iteration\ncase-0,reject,unclear,1\n",
            [{"case": "case-0", "verdict": "reject", "reason": "unclear", "iteration": 1}],
        ),
        ("d.jsonl", ('{"case": "case-0", "verdict": '
                    '"approve"}\n'), [{"case": "case-0", "verdict": "approve"}]),
    ],
    ids=["label-studio", "argilla", "csv", "jsonl"],
)  # fmt: skip
def test_decisions_are_imported_from_annotation_tools_and_tables(
    desk: Desk, tmp_path: Path, name: str, content: str, expected: list[dict[str, Any]]
) -> None:
    file = tmp_path / name
    file.write_text(content)
    rows = [row for row in read_decisions(file) if not isinstance(row, InputError)]
    assert [{key: value for key, value in row.items() if key != "line"} for row in rows] == expected
    if name == "ls.json":  # the words stand elsewhere in the answer of the test
        rows[0]["labels"][0].pop("start")
    results = list(desk.decide_all(rows))
    assert [str(result.error) for result in results if result.error] == []
    assert all(
        result.entry
        and result.entry.decision
        and result.entry.decision.machine_shown == (SHOWN_UNKNOWN,)
        for result in results
    )


def test_a_desk_creates_its_database_audits_a_frame_and_reuses_runs(
    tmp_path: Path,
) -> None:
    frame = pd.DataFrame(
        {
            "frage": ["How long?", "How old?"],
            "antwort": ["It is 9 m long [1].", "It is old [3]."],
            "beleg": ["[1] 9 m.\n[2] Old."] * 2,
        }
    )
    names = {"query": "frage", "answer": "antwort", "evidence": "beleg"}
    with masis.Desk(tmp_path / "new.db", reviewer="Ada") as desk:
        runs = desk.audit(frame, map=names, progress=False)
        assert [run.id for run in desk.audit(frame, map=names, progress=False)] == [
            run.id for run in runs
        ]
        table = masis.runs_to_pandas(runs)
        for case_id, standing, headline in zip(
            table["case_id"], table["standing"], table["headline"], strict=True
        ):
            summary = desk.show(case_id).summary
            assert (summary.standing, (summary.headline or "").partition("\n")[0]) == (
                standing,
                headline,
            )
        assert "wrong" in set(table["standing"])
        changed = {"id": runs[0].case_id, "query": "Why?", "answer": "So.", "evidence": ["So."]}
        fresh = {"id": "fresh", "query": "Why?", "answer": "So.", "evidence": ["So."]}
        with pytest.raises(CaseConflict, match="another id, or read the file with --map id="):
            desk.audit([fresh, changed], progress=False)
        assert desk.show("fresh").run is None  # read and stored; nothing was audited


@pytest.mark.parametrize(
    ("reason", "recorded"),
    [
        ("unsuported", None),
        ("needs_evidence", None),
        ("other: unsuported", "unsuported"),
        ("It names no source.", "It names no source."),
        ("unsupported", "Says more than the evidence"),
    ],
)
def test_a_one_word_reason_must_be_a_known_code(
    desk: Desk, reason: str, recorded: str | None
) -> None:
    if recorded is not None:
        entry = desk.decide("case-0", "reject", reason=reason)
        assert entry.decision.reason == recorded
        return
    with pytest.raises(
        InputError,
        match=r"isn't a reason to reject\. Use one of fabricated_citation, .*'other: \.\.\.'",
    ):
        desk.decide("case-0", "reject", reason=reason)


def test_a_misspelled_case_id_gets_a_suggestion(desk: Desk) -> None:
    with pytest.raises(UnknownRecord, match="Did you mean 'case-0'"):
        desk.decide("Case-0", "approve")


def test_a_desk_opens_an_existing_database(tmp_path: Path) -> None:
    Store.open(tmp_path / "some.db").close()
    with masis.Desk(tmp_path / "some.db", reviewer="Ada") as desk:
        assert desk.queue() == ()
        with pytest.raises(InputError, match="order: is 'nonsense'"):
            desk.queue(order="nonsense")
