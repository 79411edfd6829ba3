"""A corpus and PubMed asked together: what both report is screened once, and one that fails stops nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from masis.audit.run_control import RunControl
from masis.schema.screening import Abstract, Query
from masis.screening.grading.grader import Grader
from masis.screening.sources.pubmed import pubmed_of
from masis.screening.sources.retrievers import search_source
from masis.services.screening import ScreeningService
from masis.settings import Settings
from masis.store import Store
from tests.reviewing import ADA
from tests.screening.entrez_server import Reply, Server, serving
from tests.screening.scripted import SERIES, STRONG, ScriptedGrader

QUESTION = "Does aspirin relieve headache?"


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(Server(pmids=list(range(101, 131)))) as running:
        yield running


@pytest.fixture
def desk(tmp_path: Path, server: Server) -> Iterator[ScreeningService]:
    settings = Settings(
        screening_graders="scripted",
        screening_retrieve=4,
        screening_pubmed_email="reviewer@example.org",
        screening_pubmed_address=server.address,
    )

    def grader(settings: Settings, control: RunControl) -> Grader:
        return ScriptedGrader({}, STRONG)

    store = Store.open(tmp_path / "w.db")
    opened = ScreeningService(store, settings, grader)
    held = [Abstract(id=f"mine-{pmid}", title=f"Aspirin, headache {pmid}", pmid=str(pmid)) for pmid in (102, 104, 900)]
    store.corpora.add_many("mine", held, source="the test")
    yield opened
    store.close()


def test_a_record_that_both_report_is_screened_once_and_counted_as_found_again(
    desk: ScreeningService, server: Server
) -> None:
    found = desk.screen(ADA, QUESTION, ["corpus:mine", "pubmed"])
    assert found.outcome == "sufficient"
    assert found.retrievers == ("corpus:mine", "pubmed")
    assert (found.flow.identified, found.flow.duplicates, found.flow.screened) == (7, 2, 5)
    kept = desk.open(found.id).abstracts
    assert sorted(abstract.pmid or "" for abstract in kept.values()) == ["101", "102", "103", "104", "900"]
    assert {kept["mine-102"].source, kept["pmid-101"].source} == {None, "pubmed"}
    assert server.asked[0].parameters["term"] == "aspirin AND relieve AND headache"


def test_a_source_that_fails_is_reported_and_the_other_goes_on(
    desk: ScreeningService, server: Server, tmp_path: Path
) -> None:
    server.faults = [Reply(404)] * 4
    found = desk.screen(ADA, QUESTION, ["corpus:mine", "pubmed"])
    assert found.outcome == "sufficient"
    assert found.flow.screened == 3
    assert any("answered 404" in warning for warning in found.warnings)
    with Store.open(tmp_path / "w.db") as store:
        kept = [event.message for event in store.screenings.events(found.id) if event.kind == "warning"]
    assert any("answered 404" in message for message in kept)


def test_a_person_who_stops_a_screening_does_not_wait_for_a_pubmed_that_asks_for_patience(
    desk: ScreeningService, server: Server
) -> None:
    server.faults = [Reply(503, headers=(("Retry-After", "50"),))] * 4
    found = desk.screen(ADA, QUESTION, ["pubmed"], cancelled=lambda: len(server.asked) > 0)
    assert (found.outcome, found.reasons) == ("cancelled", ("Stopped by a person.",))
    assert len(server.asked) == 1, "nothing was asked again after the wait was ended"


def test_pubmed_is_asked_for_the_design_and_the_years_that_are_missing_by_its_own_fields(server: Server) -> None:
    source = pubmed_of(Settings(screening_pubmed_email="a@example.org", screening_pubmed_address=server.address))
    query = Query(text="aspirin headache randomised controlled trial", why="", design="randomised_trial", since=2019)
    assert len(search_source(source, query, 4)) == 4
    asked = server.asked[0].parameters
    assert asked["term"] == "(aspirin AND headache) AND (randomized controlled trial[pt])"
    assert (asked["datetype"], asked["mindate"], asked["maxdate"]) == ("pdat", "2019", "3000")
    plain = Query(text="aspirin headache", why="")
    search_source(source, plain, 4)
    assert "mindate" not in server.asked[2].parameters


def test_a_second_round_asks_pubmed_for_what_is_missing(tmp_path: Path, server: Server) -> None:
    settings = Settings(
        screening_graders="scripted",
        screening_retrieve=4,
        screening_pubmed_email="reviewer@example.org",
        screening_pubmed_address=server.address,
    )
    with Store.open(tmp_path / "w.db") as store:
        service = ScreeningService(store, settings, lambda settings, control: ScriptedGrader({}, SERIES))
        found = service.screen(ADA, QUESTION, ["pubmed"])
    assert {"randomised_trial", "systematic_review"} <= {query.design for query in found.rounds[1].queries}
    searches = [asked.parameters for asked in server.asked if asked.path.endswith("esearch.fcgi")]
    assert any("AND (systematic review[pt] OR meta-analysis[pt])" in asked["term"] for asked in searches)
    assert len({(asked["term"], asked["retstart"]) for asked in searches}) == len(searches)
