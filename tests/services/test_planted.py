"""Planted faults: who finds them, and that nothing shows or counts them that shouldn't."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from masis.datasets.exports.export import Selection
from masis.datasets.exports.formats import export_formats
from masis.errors import InputError, NotAllowed, StoreError
from masis.schema.actor import Actor
from masis.schema.case import Case
from masis.schema.review import Decision
from masis.schema.team import QueuePolicy
from masis.services import Workbench
from masis.services.access import SIGN_IN_REQUIRED
from masis.services.planted import PlantedService
from masis.services.records import CaseFilter, DecisionFilter, MeasureFilter
from masis.services.trust.service import TrustFilter
from masis.store.reviews.states import problems
from tests.planted import a_sound_case, audit_copies, fill_with_approved
from tests.reviewing import ADA, decide, undone

BEN = Actor(name="Ben")
LEAD = Actor(name="Lea", roles=("lead",), authenticated=True)
REVIEWER = Actor(name="Ada", roles=("reviewer",), authenticated=True)


@pytest.fixture
def workbench(bench: Workbench) -> Workbench:
    """Four sound answers, audited and approved by Ada."""
    fill_with_approved(bench)
    return bench


def plant(workbench: Workbench, count: int = 1, **keys: object) -> list[str]:
    """Plant faults and return the ids of the audited copies."""
    workbench.planted.plant(ADA, count, seed=7, **keys)  # type: ignore[arg-type]
    return audit_copies(workbench)


def test_a_planted_copy_is_a_new_case_with_one_fault(
    workbench: Workbench,
) -> None:
    made = workbench.planted.plant(ADA, 2, ("figure",), seed=7)
    copies = workbench.store.planted.copies()
    assert (made.total, dict(made.planted)) == (2, {"figure": 2})
    assert [copy.case_id for copy in copies] == ["bridge-05", "bridge-06"]
    for copy in copies:
        case, source = (
            workbench.store.cases.get(copy.case_id),
            workbench.store.cases.get(copy.source_id),
        )
        assert case.answer is not None
        assert source.answer is not None
        assert case.answer[copy.fault.start : copy.fault.end] == copy.fault.after
        mended = case.answer[: copy.fault.start] + copy.fault.before + case.answer[copy.fault.end :]
        assert mended == source.answer
        assert (case.query, case.evidence, case.metadata) == (
            source.query,
            source.evidence,
            source.metadata,
        )


def test_the_same_seed_plants_the_same_faults(workbench: Workbench, tmp_path: Path) -> None:
    workbench.planted.plant(ADA, 3, seed=11)
    other = Workbench.open(tmp_path / "other.db")
    fill_with_approved(other)
    other.planted.plant(ADA, 3, seed=11)
    one, two = (
        [copy.fault for copy in bench.store.planted.copies()] for bench in (workbench, other)
    )
    assert one == two
    other.close()


def test_only_approved_original_answers_are_copied_once(
    workbench: Workbench,
) -> None:
    undone(workbench, "bridge-01", "Ada")
    decide(workbench, "bridge-02", "reject")
    made = workbench.planted.plant(ADA, 10, seed=1)
    assert (made.sound, made.total) == (2, 2)
    assert {copy.source_id for copy in workbench.store.planted.copies()} == {
        "bridge-03",
        "bridge-04",
    }
    with pytest.raises(InputError, match="no correct answers"):
        workbench.planted.plant(ADA, 1)


def test_an_answer_without_a_certain_fault_is_skipped_with_a_reason(
    bench: Workbench,
) -> None:
    case = a_sound_case(0).model_copy(
        update={"answer": "It is a well known bridge in the region [1]."}
    )
    bench.cases.add_one(ADA, case)
    bench.audits.audit(ADA, case)
    decide(bench, case.id)
    made = bench.planted.plant(ADA, 1, ("figure",))
    assert made.total == 0
    assert list(made.refused) == [
        "the answer has no figure that is also in the cited evidence and can certainly be falsified"
    ]


def test_attached_data_doesnt_reveal_the_copy(bench: Workbench) -> None:
    sound = a_sound_case(1).to_json_dict()
    sound |= {
        "labels": {"clean": True},
        "reasoning": "It is 428 metres long.",
        "response": sound["answer"],
        "messages": [
            {"role": "user", "content": sound["query"]},
            {"role": "assistant", "content": sound["answer"]},
        ],
        "citations": [{"start": 0, "end": len(str(sound["answer"])), "evidence_id": "1"}],
    }
    case = Case.from_stored(sound)
    bench.cases.add_one(ADA, case)
    bench.audits.audit(ADA, case)
    decide(bench, case.id)
    (copy_id,) = plant(bench, kinds=("negation",))
    copy = bench.store.cases.get(copy_id)
    assert sound["answer"] not in json.dumps(copy.to_json_dict(), ensure_ascii=False)
    assert copy.labels is None
    assert "428 metres long." not in copy.model_reasoning
    assert copy.given_citations[0].end == len(copy.answer or "")


def test_an_undecided_copy_looks_like_any_case(workbench: Workbench) -> None:
    case = a_sound_case(5)
    workbench.cases.add_one(ADA, case)
    workbench.audits.audit(ADA, case)
    (copy,) = plant(workbench)
    view, plain = workbench.cases.open_for(BEN, copy), workbench.cases.open_for(BEN, case.id)
    assert view.state in ("needs_review", "accepted")
    assert plain.state in ("needs_review", "accepted")
    told = json.dumps([view.case.to_json_dict(), view.summary.model_dump(mode="json")]) + repr(view)
    assert "planted" not in told.casefold()
    assert not view.history
    assert workbench.store.planted.find_revealed(copy) is None
    listed = [row.id for row in workbench.cases.find_for(BEN, CaseFilter()).rows]
    assert copy in listed
    assert len(listed) == workbench.store.cases.count() == 6
    assert sum(workbench.cases.facets_for(BEN).standings.values()) == 6
    assert workbench.store.measures.report(MeasureFilter(), "month").total.runs == 6
    assert workbench.store.decisions.entries(DecisionFilter(case_id=copy)).total == 0
    assert workbench.planted.recall(BEN).decided == ()


def test_a_decided_copy_names_its_planted_fault(workbench: Workbench) -> None:
    (copy,) = plant(workbench, kinds=("figure",))
    decide(workbench, copy, "reject", "Ben")
    told = workbench.store.planted.find_revealed(copy)
    assert told is not None
    assert told.fault.before
    assert told.fault.before != told.fault.after
    assert workbench.cases.open_for(BEN, copy).state == "planted"


def test_a_decision_about_a_revealed_copy_is_final(
    workbench: Workbench,
) -> None:
    (copy,) = plant(workbench)
    entry = decide(workbench, copy, "approve", "Ben")
    with pytest.raises(StoreError, match="planted fault"):
        workbench.reviews.undo(BEN, entry.id)
    with pytest.raises(StoreError, match="planted fault"):
        decide(workbench, copy, "reject", "Ben")
    assert workbench.planted.recall(ADA).reviewers[0].recall.found == 0


def test_recall_is_counted_by_kind_with_exact_intervals(workbench: Workbench) -> None:
    copies = plant(workbench, 4, kinds=("figure", "citation"))
    faults = {copy.case_id: copy.fault for copy in workbench.store.planted.copies()}
    answers = {case_id: workbench.store.cases.get(case_id).answer or "" for case_id in copies}
    decide(workbench, copies[0], "reject", "Ben")
    fault = faults[copies[1]]
    mended = answers[copies[1]][: fault.start] + fault.before + answers[copies[1]][fault.end :]
    decide(workbench, copies[1], "override", "Ben", corrected_answer=mended)
    decide(
        workbench,
        copies[2],
        "override",
        "Ben",
        corrected_answer=f"{answers[copies[2]]} Nothing more is known.",
    )
    decide(workbench, copies[3], "escalate", "Ben")
    report = workbench.planted.recall(ADA)
    (ben,) = report.reviewers
    assert (ben.recall.found, ben.recall.total.n) == (
        2,
        3,
    ), "a correction that leaves the fault has not found it"
    assert (round(ben.recall.total.low or 0, 3), round(ben.recall.total.high or 0, 3)) == (
        0.094,
        0.992,
    )
    assert sum(estimate.n for estimate in ben.recall.by_kind.values()) == 3
    assert workbench.store.planted.find_revealed(copies[3]) is None, (
        "an escalated copy still waits for a verdict"
    )
    assert report.audit is not None
    assert report.audit.recall.total.n == 4


def test_the_audit_finds_a_fault_if_it_flags_its_words(workbench: Workbench) -> None:
    plant(workbench, 2, kinds=("figure",))
    report = workbench.planted.recall(ADA)
    assert report.audit is not None
    assert (report.audit.recall.found, report.audit.recall.total.n) == (2, 2)


def test_reviewers_see_their_own_recall_and_leads_everyones(workbench: Workbench) -> None:
    first, second = plant(workbench, 2)
    decide(workbench, first, "reject", "Ada")
    decide(workbench, second, "approve", "Ben")
    guarded = PlantedService(workbench.store, SIGN_IN_REQUIRED)
    own, every = guarded.recall(REVIEWER), guarded.recall(LEAD)
    assert [(reviewer.reviewer, reviewer.recall.found) for reviewer in own.reviewers] == [
        ("Ada", 1)
    ]
    assert own.audit is None
    assert [decided.copy.case_id for decided in own.decided] == [first]
    assert [(reviewer.reviewer, reviewer.recall.found) for reviewer in every.reviewers] == [
        ("", 1),
        ("Ada", 1),
        ("Ben", 0),
    ]
    for act in (guarded.count_copies, guarded.withdraw, lambda actor: guarded.plant(actor, 1)):
        with pytest.raises(NotAllowed):
            act(REVIEWER)


def test_reviewers_of_the_original_are_counted_separately(workbench: Workbench) -> None:
    first, second = plant(workbench, 2)
    decide(workbench, first, "reject", "Ada")
    decide(workbench, second, "reject", "Ben")
    assert {
        reviewer.reviewer: reviewer.knew_source
        for reviewer in workbench.planted.recall(ADA).reviewers
    } == {
        "": 1,
        "Ada": 1,
        "Ben": 0,
    }


def test_a_shared_copy_is_revealed_after_all_decisions(workbench: Workbench) -> None:
    workbench.team.put_in_force(ADA, QueuePolicy(reviewers=2))
    (copy,) = plant(workbench)
    decide(workbench, copy, "reject", "Ben")
    assert workbench.store.planted.find_revealed(copy) is None
    assert workbench.cases.summary(copy).state == "needs_review"
    decide(workbench, copy, "approve", "Cleo")
    assert workbench.store.planted.find_revealed(copy) is not None, "there is nothing to adjudicate"
    assert workbench.team.adjudications(Actor(name="Dora")).total == 0
    found = {
        reviewer.reviewer: reviewer.recall.found
        for reviewer in workbench.planted.recall(ADA).reviewers
    }
    assert found == {"": 1, "Ben": 1, "Cleo": 0}


def test_undecided_copies_are_withdrawn_with_their_text(
    workbench: Workbench,
) -> None:
    first, second, third = plant(workbench, 3)
    decide(workbench, first, "reject", "Ben")
    decide(workbench, second, "escalate", "Ben")
    assert workbench.planted.withdraw(ADA) == 1
    assert workbench.store.cases.get(third).answer is None
    assert [row.id for row in workbench.cases.find(CaseFilter()).rows].count(third) == 0
    assert workbench.planted.count_copies(ADA)[1:] == (0, 1, 1, 1)
    assert (
        workbench.store.decisions.entries(DecisionFilter(case_id=third)).rows[0].decision
        is not None
    )
    assert workbench.planted.withdraw(ADA) == 0


def test_planting_and_withdrawing_are_logged(
    workbench: Workbench,
) -> None:
    from masis.schema.faults import PlantingRecord

    copies = plant(workbench, 2)
    workbench.planted.withdraw(ADA)
    history = [
        (by, record.act, record.case_ids)
        for _, by, record in workbench.store.team.history(PlantingRecord)
    ]
    assert history == [("Ada", "planted", tuple(copies)), ("Ada", "withdrawn", tuple(copies))]
    assert workbench.store.decisions.check_subjects().broken == ()


def test_a_new_version_of_a_copy_is_a_copy(bench: Workbench) -> None:
    sound = a_sound_case(0).to_json_dict()
    sound["evidence"] = [
        *sound["evidence"],
        {"id": "3", "text": "", "source": "https://example.org/3"},
    ]  # type: ignore[misc]
    case = Case.from_stored(sound)
    bench.cases.add_one(ADA, case)
    bench.audits.audit(ADA, case)
    decide(bench, case.id)
    (copy,) = plant(bench, kinds=("figure",))
    newer = bench.versions.fill_evidence(ADA, copy, {"3": "The museum opens at nine."})
    bench.audits.audit(ADA, newer)
    assert bench.cases.summary(copy).state == "superseded", (
        "else the earlier version would say what this one is"
    )
    assert bench.store.planted.find_revealed(copy) is None
    decide(bench, newer.id, "approve", "Ben")
    assert bench.store.planted.find_revealed(newer.id) is not None


def test_redacting_a_case_redacts_its_copies(workbench: Workbench) -> None:
    (copy,) = plant(workbench)
    source = workbench.store.planted.copies()[0].source_id
    workbench.reviews.redact_case(ADA, source, "asked for")
    assert workbench.store.cases.get(copy).answer is None
    fault = workbench.store.planted.copies()[0].fault
    assert (fault.before, fault.after, fault.sentence) == ("", "", "")


# what a decided copy is never part of


def figures(workbench: Workbench, folder: Path) -> dict[str, object]:
    """Everything that is exported or counted about the cases of a database."""
    found: dict[str, object] = {}
    everything = Selection(CaseFilter())
    for form in export_formats():
        for encoding in ("jsonl",) if form != "hf" else ():
            out = io.BytesIO()
            try:
                workbench.exports.write(ADA, out, form, everything, encoding=encoding)
            except InputError as error:
                found[form] = str(error)
            else:
                found[form] = out.getvalue()
    workbench.exports.write_file(ADA, folder / "hf", "hf", everything)
    found["hf"] = [
        path.read_bytes() for path in sorted((folder / "hf").rglob("*")) if path.suffix == ".jsonl"
    ]
    store = workbench.store
    found |= {
        "export count": workbench.exports.count(CaseFilter()),
        "cases": store.cases.count(),
        "list": [row.id for row in workbench.cases.find(CaseFilter(order="oldest")).rows],
        "search": workbench.cases.find(CaseFilter(text="bridge")).total,
        "facets": workbench.cases.facets_for(BEN),
        "standings": workbench.cases.standings_for(BEN, CaseFilter()),
        "states": store.cases.states(),
        "values": {
            name: workbench.cases.values_for(BEN, CaseFilter(), name)
            for name in ("datasets", "states")
        },
        "metrics": store.measures.report(MeasureFilter(), "month"),
        "metrics by critic": store.measures.count_names("critic"),
        "work": {
            kind: store.team.count_cases(kind)
            for kind in ("decided", "assigned", "skipped", "tagged")
        },
        "trust": str(workbench.trust.compare(ADA, TrustFilter(blind_only=False))),
        "gold": str(workbench.trust.compare(ADA, TrustFilter(source="gold"))),
        "claims": workbench.trust.compare_parts(ADA, "claim", "decision").rows.to_dict("records"),
        "people": str(workbench.trust.people(ADA)),
        "missed": str(workbench.trust.miss_report(ADA)),
        "together": str(workbench.trust.team_stats(ADA)),
        "decisions": workbench.trust.decisions_by(ADA),
        "today": workbench.trust.today(BEN),
        "auditors": workbench.trust.auditors(),
        "offer": [workbench.trust.offer(name)._asdict() for name, *_ in workbench.trust.auditors()],
        "undecided": store.trust.undecided_runs(),
    }
    return found


@pytest.mark.parametrize("verdict", ["approve", "reject"])
def test_a_decided_copy_is_excluded_from_exports_and_figures(
    workbench: Workbench, tmp_path: Path, verdict: str
) -> None:
    decide(workbench, "bridge-01", "reject", "Ben")
    for name in ("before", "after"):
        (tmp_path / name).mkdir()
    before = figures(workbench, tmp_path / "before")
    copies = plant(workbench, 3)
    for copy in copies:
        decide(
            workbench,
            copy,
            verdict,
            "Ben",
            labels=(
                {"target": "claim", "start": 0, "end": 3, "text": "The", "label": "supported"},
            ),
        )
    after = figures(workbench, tmp_path / "after")
    assert {name for name in before if repr(before[name]) != repr(after[name])} == set()
    with workbench.store.database.reading() as connection:
        assert list(problems(connection)) == []
    out = io.BytesIO()
    workbench.exports.write_log_csv(ADA, out, DecisionFilter())
    header, *rows = out.getvalue().decode().splitlines()
    assert header.endswith("planted")
    assert all(row.endswith("yes") == any(copy in row for copy in copies) for row in rows)


def test_an_undecided_copy_is_excluded_from_exports_and_samples(
    workbench: Workbench, tmp_path: Path
) -> None:
    copies = plant(workbench, 3)
    for folder in (tmp_path / "one",):
        folder.mkdir()
        exported = {
            name: value
            for name, value in figures(workbench, folder).items()
            if name in (*export_formats(), "offer")
        }
    assert not [
        name for name, value in exported.items() if any(copy in repr(value) for copy in copies)
    ]
    assert all(offer["pool"] == 0 for offer in exported["offer"])  # type: ignore[attr-defined]
    workbench.datasets.freeze(
        ADA,
        "round-1",
        "cases" if "cases" in export_formats() else "decided",
        Selection(CaseFilter()),
    )
    workbench.datasets.write(ADA, "round-1", tmp_path / "frozen.jsonl")
    frozen = (tmp_path / "frozen.jsonl").read_text(encoding="utf-8")
    assert frozen
    assert not [copy for copy in copies if copy in frozen]


def test_programs_also_offer_copies_to_reviewers(workbench: Workbench) -> None:
    (copy,) = plant(workbench)
    if workbench.cases.summary(copy).state == "needs_review":
        assert workbench.team.next_open(BEN, CaseFilter()) == copy
    decision = Decision(reviewer="Ben", case_id=copy, run_id=None, verdict="reject", reason="why")
    assert workbench.reviews.submit(BEN, decision).decision is not None
    assert workbench.team.next_open(BEN, CaseFilter()) is None
