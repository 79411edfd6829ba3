"""The use cases of screening: kept as it goes, taken up, overridden, handed over, remembered, exported."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import pytest

from masis.audit.run_control import RunControl
from masis.errors import InputError, Removed, SettingsError, StaleVersion, StoreError, UnknownRecord
from masis.schema.actor import Actor
from masis.schema.screening import Abstract, Grade, ScreeningEvent
from masis.screening.grading.grader import Grader
from masis.services import Workbench
from masis.services.retention import rule_of
from masis.services.screening import ScreeningService
from masis.settings import Settings
from tests.reviewing import ADA
from tests.screening.scripted import BORDERLINE, SERIES, STRONG, WEAK, Said, ScriptedGrader

QUESTION = "Does aspirin relieve headache?"
SETTINGS = Settings(screening_graders="scripted", screening_retrieve=5)


def corpus(count: int = 8) -> list[Abstract]:
    return [
        Abstract(
            id=f"a{i}",
            title=f"Aspirin for headache, report number {i} of a series",
            text=f"Background matters. Aspirin relieved headache in group {i}. Nobody was harmed in trial {i}.",
            pmid=str(9000 + i),
            authors=("Doe, Jane",),
            year=2000 + i,
        )
        for i in range(count)
    ]


class Desk(ScreeningService):
    """A service whose grader says what the test wrote."""

    def __init__(self, path: Path, says: dict[str, Said] | None = None, default: Said = STRONG) -> None:
        self.grader = ScriptedGrader(says or {}, default)
        self.bench = Workbench.open(path / "w.db", SETTINGS)
        super().__init__(self.bench.store, SETTINGS, self._made)
        self.store = self.bench.store
        self.store.corpora.add_many("headache", corpus(), source="the test")

    def _made(self, settings: Settings, control: RunControl) -> Grader:
        return self.grader


def test_a_screening_is_kept_with_its_rounds_grades_abstracts_and_events(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    seen: list[ScreeningEvent] = []
    found = desk.screen(ADA, QUESTION, ["corpus:headache"], on_event=seen.append)
    opened = desk.open(found.id)
    assert opened.machine == opened.screening == found
    assert opened.machine.retrievers == ("corpus:headache",)
    assert set(opened.abstracts) == {grade.abstract_id for grade in found.grades}
    assert tuple(seen) == desk.store.screenings.events(found.id)
    assert seen[-1].kind == "screening_finished"


def test_what_was_graded_before_costs_nothing_in_the_next_screening(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    first = desk.screen(ADA, QUESTION, ["corpus:headache"])
    asked = len(desk.grader.asked)
    second = desk.screen(ADA, QUESTION, ["corpus:headache"])
    assert len(desk.grader.asked) == asked
    assert [grade.quality for grade in second.grades] == [grade.quality for grade in first.grades]


@pytest.mark.spec("AESOP-ROUNDS")
def test_one_that_is_cut_short_is_taken_up_where_it_was(tmp_path: Path) -> None:
    class Breaking(ScriptedGrader):
        def grade(self, question: str, abstracts: Sequence[Abstract]) -> tuple[Grade, ...]:
            if len(self.asked) >= 5:
                raise KeyboardInterrupt
            return super().grade(question, abstracts)

    desk = Desk(tmp_path, default=SERIES)
    desk.grader = Breaking({}, SERIES)
    with pytest.raises(KeyboardInterrupt):
        desk.screen(ADA, QUESTION, ["corpus:headache"], screening_id="one")
    assert desk.store.screenings.in_state("interrupted") == ("one",)
    before = list(desk.grader.asked)
    assert desk.store.screenings.summary("one").why
    kept = [each.round for each in desk.store.screenings.progress("one").progress.finished]
    assert kept
    desk.grader = ScriptedGrader({}, SERIES)
    found = desk.screen(ADA, "another question", ["corpus:elsewhere"], screening_id="one")
    assert found.question == QUESTION
    assert not set(desk.grader.asked) & set(before)
    assert list(found.rounds[: len(kept)]) == kept
    assert [each.number for each in found.rounds] == list(range(len(found.rounds)))
    assert len(found.rounds) > 1
    numbers = [event.seq for event in desk.store.screenings.events("one")]
    assert numbers == sorted(set(numbers))
    with pytest.raises(StoreError, match="nothing to resume"):
        desk.store.screenings.resume("one")


def test_a_person_can_stop_it_from_elsewhere(tmp_path: Path) -> None:
    desk = Desk(tmp_path, default=BORDERLINE)

    def stop(event: ScreeningEvent) -> None:
        if event.kind == "round_finished":
            desk.store.screenings.request_cancel(event.screening_id)

    found = desk.screen(ADA, QUESTION, ["corpus:headache"], on_event=stop)
    assert (found.outcome, len(found.rounds)) == ("cancelled", 1)


@pytest.mark.spec("AESOP-OVERRIDE")
def test_an_override_is_recorded_and_flips_the_decision_and_can_be_taken_back(tmp_path: Path) -> None:
    desk = Desk(tmp_path, {"a0": WEAK, "a1": WEAK})
    found = desk.screen(ADA, QUESTION, ["corpus:headache"])
    chosen = next(grade.abstract_id for grade in found.grades if grade.recommendation == "keep")
    assert found.outcome == "sufficient"
    opened = desk.override(ADA, found.id, chosen, "recommendation", "discard", reason="Retracted.")
    assert opened.screening.outcome == "evidence_insufficient"
    assert opened.machine == found
    (entry,) = desk.log(found.id)
    assert [(each.id, each.value, each.at) for each in opened.overrides] == [(entry.id, "discard", entry.at)]
    back = desk.override(ADA, found.id, chosen, "recommendation", None, reason="")
    assert back.screening == found
    assert len(back.overrides) == back.summary.overrides == 2
    assert desk.store.screening_log.verify().intact


@pytest.mark.parametrize(
    ("field", "value", "reason", "reviewer"),
    [
        ("relevance_score", 2.0, "Why not.", "Ada"),
        ("recommendation", "keep", " ", "Ada"),
        ("recommendation", "keep", "It is good.", " "),
    ],
)
def test_a_word_that_can_t_stand_is_refused_and_nothing_is_kept(
    tmp_path: Path, field: str, value: float | str, reason: str, reviewer: str
) -> None:
    desk = Desk(tmp_path)
    found = desk.screen(ADA, QUESTION, ["corpus:headache"])
    with pytest.raises(InputError):
        desk.override(Actor(name=reviewer), found.id, found.kept[0], field, value, reason=reason)  # type: ignore[arg-type]
    assert desk.log(found.id) == ()


def test_a_decision_on_an_older_state_is_refused(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    found = desk.screen(ADA, QUESTION, ["corpus:headache"])
    seen = desk.open(found.id).summary.version
    desk.override(ADA, found.id, found.kept[0], "recommendation", "discard", seen_version=seen, reason="No.")
    with pytest.raises(StaleVersion):
        desk.override(ADA, found.id, found.kept[1], "recommendation", "discard", seen_version=seen, reason="No.")


@pytest.mark.spec("AESOP-ANCHORS")
def test_the_kept_set_becomes_a_case_whose_anchors_are_the_sentences_of_the_abstracts(tmp_path: Path) -> None:
    desk = Desk(tmp_path, {"a0": WEAK})
    found = desk.screen(ADA, QUESTION, ["corpus:headache"])
    case = desk.hand_over(ADA, found.id)
    opened = desk.open(found.id)
    assert case.query == QUESTION
    assert case.to_json_dict()["screening"] == {"id": found.id, "outcome": found.outcome}
    assert len(case.evidence) == len(found.kept)
    for chunk in case.evidence:
        known = chunk.model_extra or {}
        abstract = opened.abstracts[known["abstract_id"]]
        assert chunk.text == abstract.text
        anchors = [chunk.text[each["start"] : each["end"]] for each in known["sentences"]]
        assert anchors[0] == "Background matters."
        assert chunk.source == f"https://pubmed.ncbi.nlm.nih.gov/{abstract.pmid}/"
    assert desk.hand_over(ADA, found.id) == case
    assert sum(entry.decision is not None and entry.decision.kind == "handed_over" for entry in desk.log(found.id)) == 1


@pytest.mark.spec("AESOP-ANCHORS")
def test_the_audit_of_what_was_handed_over_cites_sentences_of_abstracts(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    case = desk.hand_over(ADA, desk.screen(ADA, QUESTION, ["corpus:headache"]).id)
    run = desk.bench.audits.audit(ADA, case, settings=Settings(max_iterations=1))
    codes = {reason.code for reason in run.review_reasons}
    assert ("insufficient_evidence" in codes) == (case.evidence_outcome != "sufficient")
    citations = run.iterations[0].citation_audit.citations
    assert citations
    texts = {chunk.id: chunk.text for chunk in case.evidence}
    assert all(citation.evidence_id in texts for citation in citations)
    quotes = [quote for check in run.iterations[0].claims for quote in check.quotes]
    assert quotes
    assert all(texts[quote.evidence_id][quote.start : quote.end] == quote.text for quote in quotes)


def test_with_nothing_kept_there_is_nothing_to_hand_over(tmp_path: Path) -> None:
    desk = Desk(tmp_path, default=WEAK)
    found = desk.screen(ADA, QUESTION, ["corpus:headache"])
    with pytest.raises(InputError, match="nothing is kept"):
        desk.hand_over(ADA, found.id)


@pytest.mark.spec("AESOP-MEMORY")
def test_memory_survives_a_restart_follows_overrides_and_can_be_reset(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    found = desk.screen(ADA, QUESTION, ["corpus:headache"])
    again = Desk(tmp_path)
    assert len(again.memory().entries) == len(found.kept)
    assert not again.memory().on
    again.override(ADA, found.id, found.kept[0], "recommendation", "discard", reason="No.")
    assert len(again.memory().entries) == len(found.kept) - 1
    with pytest.raises(InputError, match="reason"):
        again.reset_memory(ADA, reason="")
    again.reset_memory(ADA, reason="Another field.")
    assert again.memory().entries == ()


@pytest.mark.spec("AESOP-MEMORY")
def test_a_screening_records_the_thresholds_that_memory_made(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    on = SETTINGS.model_copy(update={"screening_memory": True})
    for number in range(5):
        desk.screen(ADA, f"{QUESTION} Take {number}.", ["corpus:headache"])
    found = desk.screen(ADA, QUESTION, ["corpus:headache"], settings=on)
    assert found.thresholds.adapted_by == -0.05
    assert found.thresholds.required_average[0] == 0.65
    assert desk.screen(ADA, QUESTION, ["corpus:headache"]).thresholds.required_average[0] == 0.70


@pytest.mark.spec("AESOP-DRIFT")
def test_drift_is_reported_for_each_grader_and_each_reviewer_over_changes_and_agreements(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    found = [desk.screen(ADA, QUESTION, ["corpus:headache"]) for _ in range(13)]
    judged = [(each.id, name) for each in found for name in each.kept]
    assert len(judged) == 65
    for screening_id, abstract_id in judged[:60]:
        desk.agree(ADA, screening_id, abstract_id)
    for screening_id, abstract_id in judged[60:]:
        desk.override(Actor(name="Bob"), screening_id, abstract_id, "recommendation", "discard", reason="Read.")
    grader, ada, bob = desk.drifts()
    assert (grader.who, grader.what) == ("Grader scripted", "grades changed by people: 5 of 65 judgements")
    assert (grader.drift.enough, grader.drift.usual) == (True, 0.0)
    assert (ada.who, ada.what) == ("Ada", "grades this reviewer changed: 0 of 60 judgements")
    assert (bob.who, bob.what) == ("Bob", "grades this reviewer changed: 5 of 5 judgements")


def values(desk: Desk) -> list[float]:
    """What the judgements about the one grader are, in order."""
    series = desk.drifts()
    return [point.value for point in series[0].drift.points] if series else []


def test_a_judgement_is_what_a_person_last_said_and_an_undo_takes_it_away(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    found = desk.screen(ADA, QUESTION, ["corpus:headache"])
    first, second = found.kept[:2]
    desk.agree(ADA, found.id, first)
    desk.agree(ADA, found.id, first)  # again: one judgement
    desk.override(ADA, found.id, second, "relevance_score", 0.9, reason="As it is.")  # the grader's own value
    assert values(desk) == [0.0, 0.0]
    desk.override(ADA, found.id, first, "relevance_score", 0.2, reason="About another drug.")
    assert values(desk) == [0.0, 1.0]
    desk.override(ADA, found.id, first, "relevance_score", None, reason="")
    assert values(desk) == [0.0, 0.0]  # the agreement stands again
    desk.agree(ADA, found.id, first, agrees=False)
    assert values(desk) == [0.0]


def test_an_agreement_is_an_entry_that_changes_no_grade_and_can_be_taken_back(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    found = desk.screen(ADA, QUESTION, ["corpus:headache"])
    name = found.kept[0]
    opened = desk.agree(ADA, found.id, name, machine_shown=("grades",), token="once")
    again = desk.agree(ADA, found.id, name, machine_shown=("grades",), token="once")
    assert opened.screening == opened.machine
    assert [(each.abstract_id, each.reviewer) for each in again.agreements] == [(name, "Ada")]
    (entry,) = desk.log(found.id)
    assert entry.decision is not None
    assert (entry.decision.kind, entry.decision.abstract_id) == ("agreement", name)
    assert entry.decision.about is not None
    assert entry.decision.about.grade
    desk.agree(Actor(name="Bob"), found.id, name, agrees=False)  # Bob had not said anything
    assert len(desk.open(found.id).agreements) == 1
    assert desk.agree(ADA, found.id, name, agrees=False).agreements == ()
    assert (
        len(desk.log(found.id)),
        desk.store.screening_log.verify().broken,
        desk.store.screening_log.check_subjects().broken,
    ) == (3, (), ())


def test_an_agreement_is_refused_where_it_is_with_nothing_or_with_a_changed_grade(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    found = desk.screen(ADA, QUESTION, ["corpus:headache"])
    with pytest.raises(UnknownRecord, match="has no grade of 'nowhere'"):
        desk.agree(ADA, found.id, "nowhere")
    desk.override(ADA, found.id, found.kept[0], "direction", "opposite", reason="Read.")
    assert desk.agree(ADA, found.id, found.kept[0]).agreements  # the direction is no part of what a grader said
    desk.override(ADA, found.id, found.kept[0], "recommendation", "discard", reason="Read.")
    with pytest.raises(InputError, match="a person has changed this grade"):
        desk.agree(ADA, found.id, found.kept[0])
    with pytest.raises(StaleVersion):
        desk.agree(ADA, found.id, found.kept[1], seen_version=0)


def test_what_was_carried_over_into_a_further_screening_counts_once(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    found = desk.screen(ADA, QUESTION, ["corpus:headache"])
    desk.override(ADA, found.id, found.kept[0], "recommendation", "discard", reason="Read.")
    further = desk.search_further(ADA, found.id)
    assert len(desk.open(further.id).overrides) == 1
    assert values(desk) == [1.0]


def test_drift_leaves_out_what_retention_has_removed(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    found = desk.screen(ADA, QUESTION, ["corpus:headache"])
    desk.override(ADA, found.id, found.kept[0], "relevance_score", 0.85, reason="Read.")
    assert [series.who for series in desk.drifts()] == ["Grader scripted", "Ada"]
    done = desk.bench.retention.purge(ADA, rule_of(0, decided=True, now="2099-01-01T00:00:00Z"), how="command")
    assert done.purge is not None
    assert done.purge.screenings == 1
    assert desk.drifts() == ()
    with pytest.raises(Removed):
        desk.open(found.id)


def test_the_log_is_exported_as_csv_that_no_spreadsheet_runs(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    hostile = Abstract(id="=x", title='=HYPERLINK("http://example.org")', text="Aspirin relieved headache.\nTY  - JOUR")
    desk.store.corpora.add_many("hostile", [hostile], source="the test")
    found = desk.screen(ADA, QUESTION, ["corpus:hostile"])
    out = io.BytesIO()
    assert desk.write_csv(ADA, found.id, out) == 1
    (row,) = csv.DictReader(io.StringIO(out.getvalue().decode()))
    assert row["title"] == '\'=HYPERLINK("http://example.org")'
    assert (row["abstract_id"], row["recommendation"], row["relevance_score"]) == ("'=x", "keep", "0.9000")
    ris = io.BytesIO()
    assert desk.write_ris(ADA, found.id, ris) == 1
    assert ris.getvalue().decode().count("\r\nTY  - ") == 0
    assert ris.getvalue().decode().startswith("TY  - JOUR\r\nID  - =x\r\n")


@pytest.mark.parametrize(
    ("question", "sources", "error"),
    [
        (" ", ["corpus:headache"], InputError),
        (QUESTION, [], InputError),
        (QUESTION, ["web:anything"], InputError),
        (QUESTION, ["corpus:nowhere"], UnknownRecord),
        (QUESTION, ["pubmed"], SettingsError),
    ],
)
def test_what_can_t_be_screened_is_refused_before_anything_is_kept(
    tmp_path: Path, question: str, sources: list[str], error: type[Exception]
) -> None:
    desk = Desk(tmp_path)
    with pytest.raises(error):
        desk.screen(ADA, question, sources)
    assert desk.store.screenings.newest() == ()


@pytest.mark.spec("AESOP-ROUNDS")
def test_a_finished_screening_is_searched_further_as_a_new_one_with_its_rounds_and_overrides(tmp_path: Path) -> None:
    desk = Desk(tmp_path, default=SERIES)
    once = SETTINGS.model_copy(update={"screening_max_rounds": 1})
    first = desk.screen(ADA, QUESTION, ["corpus:headache"], settings=once)
    assert (first.outcome, len(first.rounds)) == ("evidence_insufficient", 1)
    desk.override(ADA, first.id, "a0", "recommendation", "keep", reason="I know this trial.")
    graded = list(desk.grader.asked)
    further = desk.search_further(ADA, first.id, rounds=2)
    assert further.id != first.id
    assert further.rounds[0] == first.rounds[0]
    assert 1 < len(further.rounds) <= 3
    assert not set(desk.grader.asked[len(graded) :]) & set(graded)
    assert further.thresholds == first.thresholds
    opened = desk.open(further.id)
    assert opened.screening.kept == ("a0",)
    (carried,) = opened.overrides
    assert carried.reason == f"I know this trial. (carried over from screening {first.id[:8]}: Ada)"
    assert desk.open(first.id).machine == first
    assert desk.store.screening_log.verify().intact


def test_what_is_not_finished_or_has_lost_its_source_is_not_searched_further(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    first = desk.screen(ADA, QUESTION, ["corpus:headache"])
    with pytest.raises(UnknownRecord):
        desk.search_further(ADA, "nobody")
    desk.store.corpora.remove("headache")
    with pytest.raises(UnknownRecord):
        desk.search_further(ADA, first.id)
    assert len(desk.store.screenings.newest(10)) == 1


@pytest.mark.spec("AESOP-OVERRIDE")
def test_corrections_are_entries_of_the_log_that_go_into_csv_and_can_be_undone(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    found = desk.screen(ADA, QUESTION, ["corpus:headache"])
    first, *_ = found.kept
    desk.override(ADA, found.id, first, "blinding", "stated", reason="=Methods, line 3")
    opened = desk.override(ADA, found.id, first, "direction", "opposite", reason="Read in full.")
    assert opened.synthesis.counts["opposite"] == 1
    assert opened.machine == found
    before, grade = found.grade(first), opened.screening.grade(first)
    assert before is not None
    assert grade is not None
    assert grade.corrections == {"blinding": "stated"}
    assert grade.methodology_raw is not None
    assert before.methodology_raw is not None
    assert grade.methodology_raw > before.methodology_raw
    kinds = [each.decision.override.field for each in desk.log(found.id) if each.decision and each.decision.override]
    assert kinds == ["direction", "blinding"]
    assert desk.store.screening_log.check_subjects().broken == ()
    out = io.BytesIO()
    desk.write_csv(ADA, found.id, out)
    row = next(row for row in csv.DictReader(io.StringIO(out.getvalue().decode())) if row["abstract_id"] == first)
    assert row["overridden"] == "blinding direction"
    assert row["direction"] == "opposite effect"
    said = "blinded: stated (Ada: =Methods, line 3); direction: opposite effect (Ada: Read in full.)"
    assert row["corrections"] == said
    desk.drifts()  # a correction is no score of the grade: it is passed over
    desk.override(ADA, found.id, first, "blinding", None, reason="")
    assert desk.override(ADA, found.id, first, "direction", None, reason="").screening == found
    assert desk.store.screening_log.verify().intact


def test_a_question_is_planned_again_with_other_concepts_and_the_rest_as_it_was(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    criteria = SETTINGS.model_copy(update={"screening_criteria": "exclude: animals", "screening_retrieve": 3})
    found = desk.screen(ADA, QUESTION, ["corpus:headache"], settings=criteria)
    plan = desk.plan_again(found.id, {"population": "adults", "intervention": "aspirin", "outcome": "headache"})
    assert (plan.question, plan.sources) == (QUESTION, ("corpus:headache",))
    assert plan.settings.screening_concepts == "population: adults"
    assert plan.settings.screening_criteria == "exclude: animals"
    assert plan.settings.screening_retrieve == 3
    with pytest.raises(UnknownRecord):
        desk.plan_again("nowhere", {})
    made_from_a_file = found.model_copy(update={"id": "file", "retrievers": ("found.ris",)})
    desk.store_screening(ADA, made_from_a_file, corpus())
    with pytest.raises(InputError, match="are not stored"):
        desk.plan_again("file", {})
