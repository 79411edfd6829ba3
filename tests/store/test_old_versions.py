"""A database and an archive that the first version wrote: they open, and nothing a person or a judge said is changed.

The files hold six cases (decided, undone, overridden, redacted, accepted by policy, removed by retention, cut short),
a screening with an override, a redacted one and a reset, and a corpus.
"""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pytest

from masis.datasets.archive import read_archive, write_archive
from masis.errors import Removed
from masis.schema.run import MUST_LOOK
from masis.schema.team import QueuePolicy
from masis.store import CaseFilter, Store
from masis.store.core import guards, migrations
from masis.store.core.connections import connect

DATA = Path(__file__).parent / "data"
ARCHIVE = gzip.decompress((DATA / "written_by_0.1.jsonl.gz").read_bytes())
HEAD = (7, "3f20fe745fa0394b7b89230a2d9d3d21e4f10f624d3e5987c37e11a4342aa714")
SCREENING_HEAD = (4, "74acc6daad52804fb4cd2186ae2260b927a0fa756cd51c05dd2955cb431eea24")
STATES = {
    "approved": "approved",
    "overridden": "escalated",
    "removed": "new",
    "waiting": "needs_review",
    "accepted": "accepted",
    "new": "interrupted",
}


@pytest.fixture(params=["database", "archive"])
def old(request: pytest.FixtureRequest, path: Path) -> Store:
    """What the first version wrote, opened as a database or imported as an archive."""
    path.parent.mkdir(parents=True)
    if request.param == "database":
        path.write_bytes(gzip.decompress((DATA / "written_by_0.1.db.gz").read_bytes()))
        return Store.open(path)
    file = path.with_suffix(".jsonl")
    file.write_bytes(ARCHIVE)
    store = Store.open(path)
    read_archive(file, store)
    return store


def test_it_opens_migrates_and_shows_what_was_decided(old: Store) -> None:
    connection = connect(old.path)
    assert migrations.applied(connection) == migrations.names()
    assert guards.missing(connection) == ()
    connection.close()
    assert old.check().ok
    assert (old.decisions.head(), old.screening_log.head()) == (HEAD, SCREENING_HEAD)
    assert {row.id: row.state for row in old.cases.search(CaseFilter()).rows} == STATES
    approved, undo, rejected = old.decisions.entries().rows[-4:-1]
    assert approved.decision is not None
    assert (approved.decision.reviewer, approved.decision.note) == ("Ada", "after all")
    assert rejected.decision is not None
    assert undo.decision is not None
    assert undo.decision.undoes == rejected.id
    (label,) = approved.decision.labels
    assert (label.label, label.note) == ("redundant", "one is enough")
    (audited,) = old.runs.for_case("approved")
    first = old.runs.get(audited.id).iterations[0]
    findings = {each.finding for claim in first.claims for each in claim.references}
    assert findings == {"supports", "redundant"}
    assert old.drafts.load("Ada", "case:waiting") in ({}, {"note": "half typed"})  # an archive holds no drafts


def test_finished_runs_still_fit_their_cases_and_figures_have_their_new_names(old: Store) -> None:
    for case_id in ("approved", "overridden", "waiting", "accepted"):
        (run,) = old.runs.for_case(case_id)
        assert old.runs.get(run.id).case_digest == old.cases.get(case_id).digest()
    assert "redundant" in old.cases.summary("waiting").flags
    assert old.cases.facets().flags["redundant"] == 3
    assert [row.id for row in old.cases.search(CaseFilter(flags=("redundant",), order="oldest")).rows] == [
        "approved",
        "overridden",
        "waiting",
    ]
    (removed,) = old.runs.for_case("removed")
    assert "redundant" in removed.flags
    with pytest.raises(Removed, match="by retention"):
        old.runs.get(removed.id)
    for order in ("disagreement", "risk"):
        assert old.cases.search(CaseFilter(order=order)).rows[-1].id in ("removed", "new")


def test_the_queue_has_a_risk_and_a_tier_for_what_was_audited_before(old: Store) -> None:
    rows = old.cases.search(CaseFilter()).rows
    tiers = {row.id: row.tier for row in rows}
    assert {case_id for case_id, tier in tiers.items() if tier == "must_look"} == {
        row.id for row in rows if MUST_LOOK.intersection(row.reasons)
    }
    assert tiers["accepted"] is None
    assert tiers["waiting"] is not None
    ranks = [("must_look", "not_certified", None).index(row.tier) for row in rows if row.run_id is not None]
    assert ranks == sorted(ranks)
    assert sum(old.cases.facets().tiers.values()) == sum(tier is not None for tier in tiers.values())


def test_its_archive_is_the_same_bytes_as_the_one_the_first_version_wrote(old: Store) -> None:
    written = io.BytesIO()
    write_archive(old, written)
    assert written.getvalue() == ARCHIVE


def test_what_is_decided_now_follows_what_was_decided_then(old: Store) -> None:
    (run,) = old.runs.for_case("waiting")
    entry = old.decisions.entries().rows[0]
    assert entry.decision is not None
    appended = old.decisions.append(entry.decision.model_copy(update={"kind": "decision", "verdict": "approve"}))
    assert (appended.seq, appended.previous) == (8, HEAD[1])
    old.redactions.redact_case("waiting", by="Officer", reason="asked for")
    assert run.id not in {each.id for each in old.runs.interrupted()}
    assert old.check().ok


def test_each_old_decision_reads_as_the_one_of_one_reviewer(old: Store) -> None:
    works = {case_id: old.team.work(case_id) for case_id in STATES}
    decided = {case_id: work.decided_by for case_id, work in works.items() if work.decided_by}
    assert decided == {"approved": ("Ada",), "overridden": ("(redacted entry 6)",)}  # whose that was is removed
    assert {(work.wanted, work.pending) for work in works.values()} == {(1, 0)}
    (entry,) = old.decisions.individual("approved")
    assert entry == old.decisions.current("approved")
    old.team.set_policy("Lead", QueuePolicy(reviewers=2))  # for what is decided from now on
    assert {row.id: row.state for row in old.cases.search(CaseFilter()).rows} == STATES
    assert {old.team.work(case_id).wanted for case_id in decided} == {1}
