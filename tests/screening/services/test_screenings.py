"""Screening as a use case: its sources, its rounds, what people say to it, and labels measured
against it.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from masis.audit.control.run_control import RunControl
from masis.errors import InputError, Removed, SettingsError, StaleVersion, StoreError, UnknownRecord
from masis.schema.actor import Actor
from masis.schema.screening import Abstract, Grade, Query, Screening, ScreeningEntry, ScreeningEvent
from masis.screening.critic import screen_abstracts
from masis.screening.grading.grader import Grader
from masis.screening.grading.question import Part
from masis.screening.readers import read_abstracts
from masis.screening.readers.decisions import decision_of
from masis.screening.services import screening_service
from masis.screening.services.screenings import ScreeningService
from masis.screening.sources import pubmed
from masis.screening.sources.pubmed import pubmed_of
from masis.screening.sources.retrievers import search_source
from masis.screening.store import ScreeningStore
from masis.screening.views.words import RECOMMENDATIONS
from masis.screening.writers import write_screening_csv, write_screening_ris
from masis.services import Workbench
from masis.services.maintenance.retention import rule_of
from masis.services.records import ScreeningLogFilter
from masis.settings import Settings
from masis.store import Store
from tests.reviewing import ADA
from tests.screening.entrez_server import Reply, Server, serving
from tests.screening.scripted import (
    BORDERLINE,
    SERIES,
    STRONG,
    WEAK,
    ScriptedGrader,
    ScriptedOpinion,
)

QUESTION = "Does aspirin relieve headache?"
SETTINGS = Settings(screening_graders="scripted", screening_retrieve=5)


def corpus(count: int = 8) -> list[Abstract]:
    return [
        Abstract(
            id=f"a{i}",
            title=f"Aspirin for headache, report number {i} of a series",
            text=(
                f"Background matters. Aspirin relieved headache in group {i}. Nobody was harmed in"
                f" trial {i}."
            ),
            pmid=str(9000 + i),
            authors=("Doe, Jane",),
            year=2000 + i,
        )
        for i in range(count)
    ]


class Desk(ScreeningService):
    """A service whose grader says what the test wrote."""

    def __init__(
        self,
        path: Path,
        says: dict[str, ScriptedOpinion] | None = None,
        default: ScriptedOpinion = STRONG,
    ) -> None:
        self.grader = ScriptedGrader(says or {}, default)
        self.bench = Workbench.open(path / "w.db", SETTINGS)
        super().__init__(self.bench.store, SETTINGS, self._make_grader)
        self.store = self.bench.store
        ScreeningStore(self.store).corpora.add_many("headache", corpus(), source="the test")

    def _make_grader(self, settings: Settings, control: RunControl) -> Grader:
        return self.grader

    def log(self, screening_id: str) -> tuple[ScreeningEntry, ...]:
        """The entries about a screening, newest first."""
        return self.store.screening_log.entries(ScreeningLogFilter(screening_id=screening_id)).rows


def run_screening(
    path: Path, says: dict[str, ScriptedOpinion] | None = None, default: ScriptedOpinion = STRONG
) -> tuple[Desk, Screening]:
    desk = Desk(path, says, default)
    return desk, desk.screen(ADA, QUESTION, ["corpus:headache"])


def test_cached_grades_cost_nothing(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    first = desk.screen(ADA, QUESTION, ["corpus:headache"])
    asked = len(desk.grader.graded_ids)
    second = desk.screen(ADA, QUESTION, ["corpus:headache"])
    assert len(desk.grader.graded_ids) == asked
    assert [grade.quality for grade in second.grades] == [grade.quality for grade in first.grades]


@pytest.mark.spec("AESOP-ROUNDS")
def test_an_interrupted_screening_continues(tmp_path: Path) -> None:
    class Breaking(ScriptedGrader):
        def grade(self, question: str, abstracts: Sequence[Abstract]) -> tuple[Grade, ...]:
            if len(self.graded_ids) >= 5:
                raise KeyboardInterrupt
            return super().grade(question, abstracts)

    desk = Desk(tmp_path, default=SERIES)
    desk.grader = Breaking({}, SERIES)
    with pytest.raises(KeyboardInterrupt):
        desk.screen(ADA, QUESTION, ["corpus:headache"], screening_id="one")
    assert ScreeningStore(desk.store).screenings.in_state("interrupted") == ("one",)
    before = list(desk.grader.graded_ids)
    assert ScreeningStore(desk.store).screenings.summary("one").why
    kept = [
        finished.round
        for finished in ScreeningStore(desk.store).screenings.progress("one").progress.finished
    ]
    assert kept
    desk.grader = ScriptedGrader({}, SERIES)
    found = desk.screen(ADA, "another question", ["corpus:elsewhere"], screening_id="one")
    assert found.question == QUESTION
    assert not set(desk.grader.graded_ids) & set(before)
    assert list(found.rounds[: len(kept)]) == kept
    assert [step.number for step in found.rounds] == list(range(len(found.rounds)))
    assert len(found.rounds) > 1
    numbers = [event.seq for event in ScreeningStore(desk.store).screenings.events("one")]
    assert numbers == sorted(set(numbers))
    with pytest.raises(StoreError, match="can't be resumed"):
        ScreeningStore(desk.store).screenings.resume("one")


def test_a_screening_can_be_stopped_from_another_process(tmp_path: Path) -> None:
    desk = Desk(tmp_path, default=BORDERLINE)

    def stop(event: ScreeningEvent) -> None:
        if event.kind == "round_finished":
            ScreeningStore(desk.store).screenings.request_cancel(event.screening_id)

    found = desk.screen(ADA, QUESTION, ["corpus:headache"], on_event=stop)
    assert (found.outcome, len(found.rounds)) == ("cancelled", 1)


@pytest.mark.spec("AESOP-OVERRIDE")
def test_an_override_changes_the_decision_and_can_be_undone(
    tmp_path: Path,
) -> None:
    desk, found = run_screening(tmp_path, {"a0": WEAK, "a1": WEAK})
    chosen = next(grade.abstract_id for grade in found.grades if grade.recommendation == "keep")
    assert found.outcome == "sufficient"
    opened = desk.override(ADA, found.id, chosen, "recommendation", "discard", reason="Retracted.")
    assert opened.screening.outcome == "evidence_insufficient"
    assert opened.machine == found
    (entry,) = desk.log(found.id)
    assert [(override.id, override.value, override.at) for override in opened.overrides] == [
        (entry.id, "discard", entry.at)
    ]
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
def test_an_invalid_override_is_rejected_without_effect(
    tmp_path: Path, field: str, value: float | str, reason: str, reviewer: str
) -> None:
    desk, found = run_screening(tmp_path)
    with pytest.raises(InputError):
        desk.override(Actor(name=reviewer), found.id, found.kept[0], field, value, reason=reason)
    assert desk.log(found.id) == ()


def test_a_stale_override_is_rejected(tmp_path: Path) -> None:
    desk, found = run_screening(tmp_path)
    seen = desk.open(found.id).summary.version
    desk.override(
        ADA, found.id, found.kept[0], "recommendation", "discard", seen_version=seen, reason="No."
    )
    with pytest.raises(StaleVersion):
        desk.override(
            ADA,
            found.id,
            found.kept[1],
            "recommendation",
            "discard",
            seen_version=seen,
            reason="No.",
        )


@pytest.mark.spec("AESOP-ANCHORS")
def test_the_kept_set_becomes_a_case_with_sentence_chunks(
    tmp_path: Path,
) -> None:
    desk, found = run_screening(tmp_path, {"a0": WEAK})
    case = desk.hand_over(ADA, found.id)
    opened = desk.open(found.id)
    assert case.query == QUESTION
    assert case.to_json_dict()["screening"] == {"id": found.id, "outcome": found.outcome}
    assert len(case.evidence) == len(found.kept)
    for chunk in case.evidence:
        known = chunk.model_extra or {}
        abstract = opened.abstracts[known["abstract_id"]]
        assert chunk.text == abstract.text
        anchors = [
            chunk.text[sentence["start"] : sentence["end"]] for sentence in known["sentences"]
        ]
        assert anchors[0] == "Background matters."
        assert chunk.source == f"https://pubmed.ncbi.nlm.nih.gov/{abstract.pmid}/"
    assert desk.hand_over(ADA, found.id) == case
    assert (
        sum(
            entry.decision is not None and entry.decision.kind == "handed_over"
            for entry in desk.log(found.id)
        )
        == 1
    )


@pytest.mark.spec("AESOP-ANCHORS")
def test_an_audit_of_the_kept_set_cites_abstract_sentences(tmp_path: Path) -> None:
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


def test_without_kept_abstracts_no_case_is_made(tmp_path: Path) -> None:
    desk, found = run_screening(tmp_path, default=WEAK)
    with pytest.raises(InputError, match="no abstract is kept"):
        desk.hand_over(ADA, found.id)


@pytest.mark.spec("AESOP-MEMORY")
def test_memory_survives_restarts_follows_overrides_and_can_be_reset(tmp_path: Path) -> None:
    _, found = run_screening(tmp_path)
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
def test_a_screening_records_its_learned_thresholds(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    on = SETTINGS.model_copy(update={"screening_memory": True})
    for number in range(5):
        desk.screen(ADA, f"{QUESTION} Take {number}.", ["corpus:headache"])
    found = desk.screen(ADA, QUESTION, ["corpus:headache"], settings=on)
    assert found.thresholds.adapted_by == -0.05
    assert found.thresholds.required_average[0] == 0.65
    assert desk.screen(ADA, QUESTION, ["corpus:headache"]).thresholds.required_average[0] == 0.70


@pytest.mark.spec("AESOP-DRIFT")
def test_drift_is_reported_per_grader_and_reviewer(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path)
    found = [desk.screen(ADA, QUESTION, ["corpus:headache"]) for _ in range(13)]
    judged = [(screening.id, name) for screening in found for name in screening.kept]
    assert len(judged) == 65
    for screening_id, abstract_id in judged[:60]:
        desk.agree(ADA, screening_id, abstract_id)
    for screening_id, abstract_id in judged[60:]:
        desk.override(
            Actor(name="Bob"),
            screening_id,
            abstract_id,
            "recommendation",
            "discard",
            reason="Read.",
        )
    grader, ada, bob = desk.drifts()
    assert (grader.name, grader.counts) == ("Grader scripted", "5 changed of 65 judged")
    assert grader.drift.usual == 0.0
    assert (ada.name, ada.counts) == ("Ada", "0 changed of 60 judged")
    assert (bob.name, bob.counts) == ("Bob", "5 changed of 5 judged")


def values(desk: Desk) -> list[float]:
    """What the judgements about the one grader are, in order."""
    series = desk.drifts()
    return [point.value for point in series[0].drift.points] if series else []


def test_a_judgement_is_a_persons_latest_entry(tmp_path: Path) -> None:
    desk, found = run_screening(tmp_path)
    first, second = found.kept[:2]
    desk.agree(ADA, found.id, first)
    desk.agree(ADA, found.id, first)  # again: one judgement
    # the grader's own value
    desk.override(ADA, found.id, second, "relevance_score", 0.9, reason="As it is.")
    assert values(desk) == [0.0, 0.0]
    desk.override(ADA, found.id, first, "relevance_score", 0.2, reason="About another drug.")
    assert values(desk) == [0.0, 1.0]
    desk.override(ADA, found.id, first, "relevance_score", None, reason="")
    assert values(desk) == [0.0, 0.0]  # the agreement stands again
    desk.agree(ADA, found.id, first, agrees=False)
    assert values(desk) == [0.0]


def test_an_agreement_changes_no_grade_and_can_be_undone(
    tmp_path: Path,
) -> None:
    desk, found = run_screening(tmp_path)
    name = found.kept[0]
    opened = desk.agree(ADA, found.id, name, machine_shown=("grades",))
    assert opened.screening == opened.machine
    assert [(agreement.abstract_id, agreement.reviewer) for agreement in opened.agreements] == [
        (name, "Ada")
    ]
    (entry,) = desk.log(found.id)
    assert (entry.decision.kind, entry.decision.abstract_id) == ("agreement", name)
    assert entry.decision.about.grade
    desk.agree(Actor(name="Bob"), found.id, name, agrees=False)  # Bob had not said anything
    assert len(desk.open(found.id).agreements) == 1
    assert desk.agree(ADA, found.id, name, agrees=False).agreements == ()
    assert (
        len(desk.log(found.id)),
        desk.store.screening_log.verify().broken,
        desk.store.screening_log.check_subjects().broken,
    ) == (3, (), ())


def test_an_agreement_needs_the_current_grade(
    tmp_path: Path,
) -> None:
    desk, found = run_screening(tmp_path)
    with pytest.raises(UnknownRecord, match="has no grade of 'nowhere'"):
        desk.agree(ADA, found.id, "nowhere")
    desk.override(ADA, found.id, found.kept[0], "direction", "opposite", reason="Read.")
    # the direction is no part of what a grader said
    assert desk.agree(ADA, found.id, found.kept[0]).agreements
    desk.override(ADA, found.id, found.kept[0], "recommendation", "discard", reason="Read.")
    with pytest.raises(InputError, match="a person has changed this grade"):
        desk.agree(ADA, found.id, found.kept[0])
    with pytest.raises(StaleVersion):
        desk.agree(ADA, found.id, found.kept[1], seen_version=0)


def test_carried_over_judgements_count_once(tmp_path: Path) -> None:
    desk, found = run_screening(tmp_path)
    desk.override(ADA, found.id, found.kept[0], "recommendation", "discard", reason="Read.")
    further = desk.search_further(ADA, found.id)
    assert len(desk.open(further.id).overrides) == 1
    assert values(desk) == [1.0]


def test_drift_excludes_removed_screenings(tmp_path: Path) -> None:
    desk, found = run_screening(tmp_path)
    desk.override(ADA, found.id, found.kept[0], "relevance_score", 0.85, reason="Read.")
    assert [series.name for series in desk.drifts()] == ["Grader scripted", "Ada"]
    done = desk.bench.retention.purge(
        ADA, rule_of(0, decided=True, now="2099-01-01T00:00:00Z"), how="command"
    )
    assert done.purge.screenings == 1
    assert desk.drifts() == ()
    with pytest.raises(Removed):
        desk.open(found.id)


def test_the_csv_log_has_no_spreadsheet_formulas(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    hostile = Abstract(
        id="=x",
        title='=HYPERLINK("http://example.org")',
        text="Aspirin relieved headache.\nTY  - JOUR",
    )
    ScreeningStore(desk.store).corpora.add_many("hostile", [hostile], source="the test")
    found = desk.screen(ADA, QUESTION, ["corpus:hostile"])
    (row,) = csv.DictReader(io.StringIO(desk.export(ADA, found.id, "csv").decode()))
    assert row["title"] == '\'=HYPERLINK("http://example.org")'
    assert (row["abstract_id"], row["recommendation"], row["relevance_score"]) == (
        "'=x",
        "keep",
        "0.9000",
    )
    ris = desk.export(ADA, found.id, "kept").decode()
    assert ris.count("\r\nTY  - ") == 0
    assert ris.startswith("TY  - JOUR\r\nID  - =x\r\n")


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
def test_an_invalid_screening_is_rejected_before_storing(
    tmp_path: Path, question: str, sources: list[str], error: type[Exception]
) -> None:
    desk = Desk(tmp_path)
    with pytest.raises(error):
        desk.screen(ADA, question, sources)
    assert ScreeningStore(desk.store).screenings.newest() == ()


@pytest.mark.spec("AESOP-ROUNDS")
def test_extending_a_screening_keeps_its_rounds_and_overrides(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path, default=SERIES)
    once = SETTINGS.model_copy(update={"screening_max_rounds": 1})
    first = desk.screen(ADA, QUESTION, ["corpus:headache"], settings=once)
    assert (first.outcome, len(first.rounds)) == ("evidence_insufficient", 1)
    desk.override(ADA, first.id, "a0", "recommendation", "keep", reason="I know this trial.")
    graded = list(desk.grader.graded_ids)
    further = desk.search_further(ADA, first.id, rounds=2)
    assert further.id != first.id
    assert further.rounds[0] == first.rounds[0]
    assert 1 < len(further.rounds) <= 3
    assert not set(desk.grader.graded_ids[len(graded) :]) & set(graded)
    assert further.thresholds == first.thresholds
    opened = desk.open(further.id)
    assert opened.screening.kept == ("a0",)
    (carried,) = opened.overrides
    assert carried.reason == f"I know this trial. (carried over from screening {first.id[:8]}: Ada)"
    assert desk.open(first.id).machine == first
    assert desk.store.screening_log.verify().intact


def test_only_finished_screenings_with_their_source_can_be_extended(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path)
    first = desk.screen(ADA, QUESTION, ["corpus:headache"])
    with pytest.raises(UnknownRecord):
        desk.search_further(ADA, "nobody")
    ScreeningStore(desk.store).corpora.remove("headache")
    with pytest.raises(UnknownRecord):
        desk.search_further(ADA, first.id)
    assert len(ScreeningStore(desk.store).screenings.newest(10)) == 1


@pytest.mark.spec("AESOP-OVERRIDE")
def test_corrections_are_logged_exported_and_undoable(
    tmp_path: Path,
) -> None:
    desk, found = run_screening(tmp_path)
    first, *_ = found.kept
    desk.override(ADA, found.id, first, "blinding", "stated", reason="=Methods, line 3")
    opened = desk.override(ADA, found.id, first, "direction", "opposite", reason="Read in full.")
    assert opened.synthesis.counts["opposite"] == 1
    assert opened.machine == found
    before, grade = found.grade(first), opened.screening.grade(first)
    assert grade.corrections == {"blinding": "stated"}
    assert grade.methodology_raw > before.methodology_raw
    kinds = [
        entry.decision.override.field
        for entry in desk.log(found.id)
        if entry.decision and entry.decision.override
    ]
    assert kinds == ["direction", "blinding"]
    assert desk.store.screening_log.check_subjects().broken == ()
    written = io.StringIO(desk.export(ADA, found.id, "csv").decode())
    row = next(row for row in csv.DictReader(written) if row["abstract_id"] == first)
    assert row["overridden"] == "blinding direction"
    assert row["direction"] == "opposite effect"
    said = (
        "blinded: stated (Ada: =Methods, line 3); direction: opposite effect (Ada: Read in full.)"
    )
    assert row["corrections"] == said
    desk.drifts()  # a correction is no score of the grade: it is passed over
    desk.override(ADA, found.id, first, "blinding", None, reason="")
    assert desk.override(ADA, found.id, first, "direction", None, reason="").screening == found
    assert desk.store.screening_log.verify().intact


def test_a_question_can_be_replanned_with_other_concepts(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path)
    criteria = SETTINGS.model_copy(
        update={"screening_criteria": "exclude: animals", "screening_retrieve": 3}
    )
    found = desk.screen(ADA, QUESTION, ["corpus:headache"], settings=criteria)
    concepts: dict[Part, str] = {
        "population": "adults",
        "intervention": "aspirin",
        "outcome": "headache",
    }
    question, sources, settings = desk.plan_again(found.id, concepts)
    assert (question, sources) == (QUESTION, ("corpus:headache",))
    assert settings.screening_concepts == "population: adults"
    assert settings.screening_criteria == "exclude: animals"
    assert settings.screening_retrieve == 3
    with pytest.raises(UnknownRecord):
        desk.plan_again("nowhere", {})
    made_from_a_file = found.model_copy(update={"id": "file", "retrievers": ("found.ris",)})
    desk.store_screening(ADA, made_from_a_file, corpus())
    with pytest.raises(InputError, match="aren't stored"):
        desk.plan_again("file", {})


# A corpus and PubMed asked together: what both report is screened once, and one that fails stops
# nothing


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    # how PubMed is paced is tested with the source itself
    monkeypatch.setattr(pubmed, "REQUESTS_PER_SECOND", 1000)
    with serving(Server(pmids=list(range(101, 131)))) as running:
        yield running


def asking(server: Server) -> Settings:
    pubmed = {
        "screening_pubmed_email": "reviewer@example.org",
        "screening_pubmed_address": server.address,
    }
    return Settings.model_validate(
        {"screening_graders": "scripted", "screening_retrieve": 4, **pubmed}
    )


@pytest.fixture
def desk(tmp_path: Path, server: Server) -> Iterator[ScreeningService]:
    settings = asking(server)

    def grader(settings: Settings, control: RunControl) -> Grader:
        return ScriptedGrader({}, STRONG)

    store = Store.open(tmp_path / "w.db")
    opened = ScreeningService(store, settings, grader)
    held = [
        Abstract(id=f"mine-{pmid}", title=f"Aspirin, headache {pmid}", pmid=str(pmid))
        for pmid in (102, 104, 900)
    ]
    ScreeningStore(store).corpora.add_many("mine", held, source="the test")
    yield opened
    store.close()


def test_a_record_from_two_sources_is_screened_once(desk: ScreeningService, server: Server) -> None:
    found = desk.screen(ADA, QUESTION, ["corpus:mine", "pubmed"])
    assert found.outcome == "sufficient"
    assert found.retrievers == ("corpus:mine", "pubmed")
    assert (found.flow.identified, found.flow.duplicates, found.flow.screened) == (7, 2, 5)
    kept = desk.open(found.id).abstracts
    assert sorted(abstract.pmid or "" for abstract in kept.values()) == [
        "101",
        "102",
        "103",
        "104",
        "900",
    ]
    assert {kept["mine-102"].source, kept["pmid-101"].source} == {None, "pubmed"}
    assert server.requests[0].parameters["term"] == "aspirin AND relieve AND headache"


def test_a_failing_source_is_reported_and_the_other_continues(
    desk: ScreeningService, server: Server, tmp_path: Path
) -> None:
    server.faults = [Reply(404)] * 4
    found = desk.screen(ADA, QUESTION, ["corpus:mine", "pubmed"])
    assert found.outcome == "sufficient"
    assert found.flow.screened == 3
    assert any("answered 404" in warning for warning in found.warnings)
    with Store.open(tmp_path / "w.db") as store:
        kept = [
            event.message
            for event in ScreeningStore(store).screenings.events(found.id)
            if event.kind == "warning"
        ]
    assert any("answered 404" in message for message in kept)


def test_stopping_a_screening_doesnt_wait_for_pubmed(
    desk: ScreeningService, server: Server
) -> None:
    server.faults = [Reply(503, headers=(("Retry-After", "50"),))] * 4
    found = desk.screen(ADA, QUESTION, ["pubmed"], cancelled=lambda: len(server.requests) > 0)
    assert (found.outcome, found.reasons) == ("cancelled", ("Stopped by a person.",))
    assert len(server.requests) == 1, "nothing was asked again after the wait was ended"


def test_pubmed_queries_use_its_design_and_date_fields(
    server: Server,
) -> None:
    source = pubmed_of(asking(server))
    query = Query(
        text="aspirin headache randomised controlled trial",
        why="",
        design="randomised_trial",
        since=2019,
    )
    assert len(search_source(source, query, 4)) == 4
    asked = server.requests[0].parameters
    assert asked["term"] == "(aspirin AND headache) AND (randomized controlled trial[pt])"
    assert (asked["datetype"], asked["mindate"], asked["maxdate"]) == ("pdat", "2019", "3000")
    plain = Query(text="aspirin headache", why="")
    search_source(source, plain, 4)
    assert "mindate" not in server.requests[2].parameters


def test_the_second_round_queries_pubmed_for_gaps(tmp_path: Path, server: Server) -> None:
    settings = asking(server)
    with Store.open(tmp_path / "w.db") as store:
        service = ScreeningService(
            store, settings, lambda settings, control: ScriptedGrader({}, SERIES)
        )
        found = service.screen(ADA, QUESTION, ["pubmed"])
    assert {"randomised_trial", "systematic_review"} <= {
        query.design for query in found.rounds[1].queries
    }
    searches = [
        asked.parameters for asked in server.requests if asked.path.endswith("esearch.fcgi")
    ]
    assert any(
        "AND (systematic review[pt] OR meta-analysis[pt])" in asked["term"] for asked in searches
    )
    assert len({(asked["term"], asked["retstart"]) for asked in searches}) == len(searches)


# ASReview, Rayyan and Covidence read the labels that we write, and their decisions come back as
# overrides

LABELLED_QUESTION = "Does aspirin relieve migraine in adults?"
TEXT = (
    "We randomly assigned 412 adults with migraine to aspirin or placebo. Patients and assessors"
    " were blinded. The primary outcome was pain at 2 hours. Aspirin relieved migraine (odds ratio"
    " 2.1, 95% CI 1.5 to 2.9; p < 0.001)."
)
TRIAL = Abstract(
    id="t", title="Aspirin for migraine in adults: a randomised trial", text=TEXT, doi="10.1000/t"
)
OFF_TOPIC = Abstract(
    id="w",
    title="Early walking after replacement of the knee",
    text="240 adults walked early.",
    pmid="7",
)


def one(text: str) -> Abstract:
    (found,) = read_abstracts(io.BytesIO(text.encode()))
    assert isinstance(found, Abstract), found
    return found


@pytest.mark.parametrize(
    ("export", "expected"),
    [
        ("title,abstract,included\nAspirin,A trial.,1\n", ("keep", "ASReview", "")),
        ("title,abstract,asreview_label\nAspirin,A trial.,0\n", ("discard", "ASReview", "")),
        ("title,abstract,included\nAspirin,A trial.,\n", None),
        ("record_id,title,included,asreview_ranking\n3,Aspirin,0,1\n", ("discard", "ASReview", "")),
        ("title,included,asreview_label,asreview_time\nAspirin,1,0,2\n", ("discard", "ASReview", "")),
        ("title,included,asreview_label,asreview_prior\nAspirin,1,,0\n", None),
        ("title,included,asreview_label,asreview_time,asreview_note\nAspirin,1,,,\n", None),
        ("title,included,asreview_label,asreview_tags\nAspirin,1,nan,\n", None),
        ("title,included,asreview_label\nAspirin,1,\n", None),
        ("title,included,ASReview label\nAspirin,1, \n", None),
        ("title,label,asreview_prior,asreview_label,asreview_time\nAspirin,1,,,\n", None),
        ("title\tdecision\tasreview_time\tasreview_label\nAspirin\tincluded\t\t\n", None),
        ('{"title": "Aspirin", "included": 1, "asreview_label": null}', None),
        ("title,included,asreview_ranking\nAspirin,1,\n", ("keep", "ASReview", "")),
        ("title,included\nAspirin,-1\n", None),
        (("TY  - JOUR\nTI  - Aspirin\nN1  - ASReview_irrelevant\nER  "
         "- \n"), ("discard", "ASReview", "")),
        ("TY  - JOUR\nTI  - Aspirin\nN1  - ASReview_not_seen\nER  - \n", None),
        (('key,title,notes\n1,Aspirin,"RAYYAN-INCLUSION: {""Ada""=>""Included""} | RAYYAN-LABELS: '
         'x"\n'),
         ("keep", "Rayyan", "")),
        (('key,title,notes\n1,Aspirin,"RAYYAN-INCLUSION: {""Ada""=>""Excluded""} | '
         'RAYYAN-EXCLUSION-REASONS: animals"\n'),
         ("discard", "Rayyan", "animals")),
        (('key,title,notes\n1,Aspirin,"RAYYAN-INCLUSION: {""Ada""=>""Included"", '
         '""Ben""=>""Excluded""}"\n'), None),
        (('key,title,notes\n1,Aspirin,"RAYYAN-INCLUSION: '
         '{""Ada""=>""Maybe""}"\n'), ("needs_more", "Rayyan", "")),
        (("Title,Abstract,Notes,Covidence #\nAspirin,A trial.,Exclusion reason: Wrong population; "
         ",#12\n"),
         ("discard", "Covidence", "Wrong population")),
        ("Title,Abstract,Notes,Covidence #\nAspirin,A trial.,,#12\n", None),
    ],
)  # fmt: skip
def test_decisions_are_read_from_each_tools_export(
    export: str, expected: tuple[str, str, str] | None
) -> None:
    assert decision_of(one(export)) == expected


def export_rows(found: Screening) -> tuple[list[dict[str, str]], list[Abstract]]:
    """Return the rows of a screening's CSV, and the records of its labels as RIS."""
    by_id, table, tags = {TRIAL.id: TRIAL, OFF_TOPIC.id: OFF_TOPIC}, io.BytesIO(), io.BytesIO()
    write_screening_csv(found, by_id, table)
    assert write_screening_ris(found, by_id, tags, RECOMMENDATIONS) == 2
    rows = list(csv.DictReader(io.StringIO(table.getvalue().decode())))
    assert [(row["title"], row["abstract"]) for row in rows] == [
        (TRIAL.title, TRIAL.text),
        (OFF_TOPIC.title, OFF_TOPIC.text),
    ]
    return rows, [
        record
        for record in read_abstracts(io.BytesIO(tags.getvalue()))
        if isinstance(record, Abstract)
    ]


def test_grades_of_a_machine_are_exported_as_suggestions() -> None:
    rows, records = export_rows(screen_abstracts(LABELLED_QUESTION, [TRIAL, OFF_TOPIC]))
    assert [(row["included"], row["suggested"]) for row in rows] == [("", "keep"), ("", "discard")]
    assert [decision_of(record) for record in records] == [None, None]
    notes = [record.model_extra["record"]["notes"] for record in records]
    assert "RAYYAN-LABELS: MASIS suggests keep" in notes[0]
    assert "RAYYAN-LABELS: MASIS suggests discard" in notes[1]


def test_decisions_of_people_are_exported_as_labels_the_tools_read() -> None:
    found = screen_abstracts(LABELLED_QUESTION, [TRIAL, OFF_TOPIC])
    decided = tuple(
        grade.model_copy(update={"overridden": ("recommendation",)}) for grade in found.grades
    )
    rows, records = export_rows(found.model_copy(update={"grades": decided}))
    assert [(row["included"], row["suggested"]) for row in rows] == [("1", ""), ("0", "")]
    assert [decision_of(record).value for record in records] == ["keep", "discard"]
    assert 'RAYYAN-INCLUSION: {"MASIS"=>"Excluded"}' in records[1].model_extra["record"]["notes"]


def test_imported_decisions_become_overrides(tmp_path: Path) -> None:
    workbench = Workbench.open(tmp_path / "masis.db", Settings())
    found = screen_abstracts(LABELLED_QUESTION, [TRIAL, OFF_TOPIC])
    screening_service(workbench).store_screening(ADA, found, [TRIAL, OFF_TOPIC])
    export = (
        "title,doi,pubmed_id,notes\n"
        f'{TRIAL.title},https://doi.org/10.1000/T,,"RAYYAN-INCLUSION: {{""Ada""=>""Excluded""}}"\n'
        'Early walking,,7,"RAYYAN-INCLUSION: {""Ada""=>""Excluded""}"\n'
        'Nobody knows this one,,,"RAYYAN-INCLUSION: {""Ada""=>""Included""}"\n'
        "Nothing said,,,\n"
    )
    records = [
        abstract
        for abstract in read_abstracts(io.BytesIO(export.encode()))
        if isinstance(abstract, Abstract)
    ]
    assert screening_service(workbench).import_labels(ADA, found.id, records) == (1, 1, 1, 1)
    opened = screening_service(workbench).open(found.id)
    assert opened.screening.kept == ()
    grade = opened.screening.grade("t")
    assert (grade.rule, grade.reasons["recommendation"].text) == (
        "person",
        "Ada: Decided in Rayyan.",
    )
    assert (
        screening_service(workbench).import_labels(ADA, found.id, [OFF_TOPIC], every="keep").changed
        == 1
    )
