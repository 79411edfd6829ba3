"""A decision is about the answer that stood on the page: every way to decide about another one is
refused.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from masis.cli.desk import _entry_line
from masis.datasets.writers.decisions import write_log_csv
from masis.errors import AnotherAnswer, StoreError, UnknownRecord
from masis.schema.actor import Actor
from masis.schema.review import Decision, answer_digest, decided_about
from masis.schema.run import Run
from masis.schema.team import QueuePolicy
from masis.server.app import Server, api_route
from masis.services import Workbench, demo_cases
from masis.services.drafts import case_subject
from masis.services.records import CaseFilter, DecisionFilter
from masis.services.reports import case_report
from masis.settings import Settings
from masis.ui.review import decision_form as forms
from masis.ui.review import desk_api  # noqa: F401 (adds its endpoints to the table)
from masis.ui.review.decisions import entry_context
from masis.ui.review.log_view import entry_row
from masis.views.answer import shown_answer
from masis.views.log_entries import verdict_text
from masis.views.numbering import numbered_issues
from masis.views.numbers import moment_utc
from tests.cases import with_copied_figure
from tests.reviewing import ADA, having_seen
from tests.ui.conftest import Serve

CASE, OTHER = "strategy-01", "docs-02"
Posted = dict[str, Any]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shown") / "shown.db"
    workbench = Workbench.open(path)
    workbench.cases.add(ADA, [with_copied_figure(case) for case in demo_cases()])
    case = workbench.store.cases.get(CASE)
    workbench.audits.audit(ADA, case, settings=Settings(max_iterations=1))
    workbench.audits.audit(ADA, case)
    workbench.audits.audit(ADA, workbench.store.cases.get(OTHER))
    return path


@pytest.fixture
def workbench(served: Path, serve: Serve) -> Workbench:
    return serve(served)


def newest(workbench: Workbench, case_id: str = CASE) -> Run:
    run = workbench.cases.open(case_id).run
    assert len(run.iterations) > 1
    return run


def older(workbench: Workbench) -> Run:
    return workbench.runs.get(workbench.cases.open(CASE).runs[-1].id)


def right(workbench: Workbench, index: int = 0, verdict: str = "approve") -> Posted:
    """What the desk sends when the answer it shows is approved."""
    view, run = workbench.cases.open(CASE), newest(workbench)
    return {
        "place": {"case": CASE, "iteration": str(index + 1) if index else ""},
        "token": f"token-{index}-{verdict}",
        "seen": view.summary.version,
        "fields": {"verdict": verdict},
        "shown": dict(shown_answer(view.case, run, index)),
        "acknowledged": [issue.id for issue in forms.serious_issues(run, index)],
        "advance": False,
    }


@pytest.fixture
def client(workbench: Workbench) -> TestClient:
    server = Server(lambda: workbench, lambda: pytest.fail("no job is needed"))
    headers = {"X-Masis-Reviewer": ADA.name, "X-Masis-Request": "1"}
    return TestClient(Starlette(routes=[api_route(server)]), headers=headers)


def post(client: TestClient, path: str, body: Posted) -> Posted:
    """Send a request of the desk, and return its answer."""
    response = client.post(f"/api/v1/desk/{path}", json=body)
    assert response.status_code == 200, response.text
    return cast("Posted", response.json())


def refused(client: TestClient, body: Posted, status: int = 422) -> Posted:
    """Send a decision that is refused, and return the error."""
    response = client.post("/api/v1/desk/decisions", json=body)
    assert response.status_code == status, response.text
    return cast("Posted", response.json()["error"])


def test_an_escalation_without_a_note_asks_for_confirmation_once(
    workbench: Workbench, client: TestClient
) -> None:
    body = right(workbench, verdict="escalate")
    error = refused(client, body)
    assert "choose a reason or write a note" in error["message"]
    assert error["field"] == "reason"
    assert workbench.reviews.current(CASE) is None
    answer = post(client, "decisions", {**body, "confirmed": [error["confirms"]]})
    assert answer["done"].startswith("Escalated")
    workbench.reviews.undo(ADA, answer["entry"])
    note = {"token": "another", "fields": {"verdict": "escalate", "note": "Which year?"}}
    answer = post(client, "decisions", {**right(workbench), **note})
    assert answer["message"]["text"].startswith("Escalated")
    workbench.reviews.undo(ADA, answer["entry"])


def test_a_decision_opens_the_next_case_or_the_one_that_was_left_to_undo(
    workbench: Workbench, client: TestClient
) -> None:
    queue = [
        row.id
        for row in workbench.cases.find(
            CaseFilter(states=("new", "needs_review"), order="oldest", size=200)
        ).rows
    ]
    assert queue.index(CASE) > 0
    for came_from, after in (("", queue[queue.index(CASE) + 1]), (queue[-1], queue[-1])):
        body = {**right(workbench), "token": f"back {came_from}", "advance": True}
        body |= {"queue": {"order": "oldest"}, "came_from": came_from}
        answer = post(client, "decisions", body)
        assert answer["desk"]["place"]["case"] == after
        assert after in {lease.case_id for lease in workbench.store.team.leases()}
        workbench.reviews.undo(ADA, answer["entry"])


def test_only_the_own_decision_on_the_answer_shown_can_be_repeated(
    workbench: Workbench, client: TestClient
) -> None:
    body = right(workbench, verdict="reject")
    body["fields"] |= {"reason": "other", "other": "Fabricated.", "note": "See page 3."}
    made = post(client, "decisions", {**body, "token": "repeatable"})
    entries = made["desk"]["standing"]["entries"]
    given = {name: entries[name] for name in ("verdict", "reason", "other", "note")}
    assert given == body["fields"]
    revision = {"place": {"case": CASE, "iteration": "2"}}
    assert post(client, "open", revision)["desk"]["standing"]["entries"] is None
    client.headers["X-Masis-Reviewer"] = "Mallory"
    assert post(client, "open", {"place": {"case": CASE}})["desk"]["standing"]["entries"] is None
    workbench.reviews.undo(ADA, made["entry"])


def test_a_repeated_decision_is_recorded_once_and_answered_again(
    workbench: Workbench, client: TestClient
) -> None:
    body = {**right(workbench), "token": "repeated", "advance": True}
    first, again = (post(client, "decisions", body) for _ in range(2))
    assert (first["entry"], first["done"]) == (again["entry"], again["done"])
    assert first["desk"]["place"] == again["desk"]["place"]
    # the token of somebody else's decision is no key to it
    theirs = client.post(
        "/api/v1/desk/decisions", json=body, headers={"X-Masis-Reviewer": "Mallory"}
    )
    assert theirs.status_code >= 400
    assert "entry" not in theirs.json()
    # a draft of the same form that arrives late doesn't come back
    late = {"place": body["place"], "token": "repeated", "fields": {"note": "late"}}
    assert client.put("/api/v1/desk/draft", json=late).json()["saved_at"] == ""
    assert not workbench.drafts.get(ADA, case_subject(CASE)).values
    undone = post(client, "undo", {"place": first["desk"]["place"], "entry": first["entry"]})
    assert undone["desk"]["place"]["case"] == CASE
    assert undone["message"]["text"].startswith("Undone: approved the original answer of")
    assert undone["desk"]["draft"]["verdict"] == "approve"
    workbench.drafts.clear(ADA, case_subject(CASE))


def test_a_newer_audit_is_announced_with_its_author_and_time(
    workbench: Workbench, client: TestClient
) -> None:
    stale = right(workbench)
    workbench.audits.audit(
        Actor(name="Ben"), workbench.store.cases.get(CASE), settings=Settings(max_iterations=2)
    )
    again, *_ = workbench.cases.open(CASE).runs
    at = (again.ended_at or "")[11:16]
    assert f"It was audited again by Ben at {at} UTC." in refused(client, stale, 409)["message"]
    other = {**right(workbench), "token": "stale", "seen": 1}
    assert "audited again" not in refused(client, other, 409)["message"]
    first, *_, last = forms.with_audits([], workbench.cases.open(CASE).runs)
    assert (first["who"], first["what"], first["at"]) == ("Ben", "Audited again", again.ended_at)
    assert first["when"] == moment_utc(again.ended_at or "")
    assert last["what"] == "Audited"


def shown(workbench: Workbench, run: Run | None, index: int, case_id: str = CASE) -> Posted:
    return dict(shown_answer(workbench.store.cases.get(case_id), run, index))


def with_shown(change: Callable[[Workbench, Posted], object]) -> Callable[[Workbench], Posted]:
    def made(workbench: Workbench) -> Posted:
        posted = right(workbench)
        return {**posted, "shown": change(workbench, posted["shown"])}

    return made


WAYS: dict[str, Callable[[Workbench], Posted]] = {
    "a revision stood on the page, the original is the page's now": with_shown(
        lambda workbench, _: shown(workbench, newest(workbench), 1)
    ),
    "the original stood on the page, the iteration was switched during submit": lambda w: {
        **right(w),
        "place": {"case": CASE, "iteration": "2"},
    },
    "the place is switched and the text is not drawn yet": with_shown(
        lambda w, now: {**now, "digest": shown(w, newest(w), 1)["digest"]}
    ),
    "the text is drawn and the place is late": with_shown(
        lambda w, now: {**now, "place": shown(w, newest(w), 1)["place"]}
    ),
    "nothing says what was shown": lambda w: {
        name: value for name, value in right(w).items() if name != "shown"
    },
    "no answer was drawn": with_shown(lambda *_: None),
    "a list in place of an answer": with_shown(lambda w, now: [now["place"], now["digest"]]),
    "no digest": with_shown(lambda w, now: {"place": now["place"]}),
    "no place": with_shown(lambda w, now: {"digest": now["digest"]}),
    "the answer of an older audit": with_shown(lambda w, _: shown(w, older(w), 0)),
    "a link switched the audit, the form is late": lambda w: {
        **right(w),
        "place": {"case": CASE, "run": older(w).id},
    },
    "another case stood on the page": with_shown(lambda w, _: shown(w, newest(w, OTHER), 0, OTHER)),
    "the form of another case posts": lambda w: {**right(w), "place": {"case": OTHER}},
    "a tab from before the first audit": with_shown(lambda w, _: shown(w, None, 0)),
    "a tab from before the newest audit": lambda w: {**right(w), "seen": right(w)["seen"] - 1},
    "an iteration that does not exist": with_shown(
        lambda w, now: {**now, "place": f"{CASE}/{newest(w).id}/9"}
    ),
    "the answer with a word more": with_shown(
        lambda w, now: {
            **now,
            "digest": answer_digest(newest(w).iterations[0].answer + " Perhaps."),
        }
    ),
    "serious issues that nobody was shown": lambda w: {**right(w), "acknowledged": []},
}


@pytest.mark.parametrize("way", WAYS)
def test_only_the_shown_answer_can_be_approved(
    workbench: Workbench, client: TestClient, way: str
) -> None:
    before = workbench.store.decisions.head().length
    response = client.post("/api/v1/desk/decisions", json=WAYS[way](workbench))
    assert response.status_code in (400, 409, 422)
    assert response.json()["error"]["message"]
    assert workbench.store.decisions.head().length == before


def test_the_service_rejects_a_decision_about_another_answer(workbench: Workbench) -> None:
    run = newest(workbench)
    original, revised = (answer_digest(iteration.answer) for iteration in run.iterations[:2])

    def decide(digest: str, run_id: str | None = run.id, iteration: int | None = 1) -> None:
        made = Decision(
            reviewer="Ada", case_id=CASE, run_id=run_id, iteration=iteration, verdict="approve"
        )
        workbench.reviews.submit(ADA, made, shown=digest)

    before = workbench.store.decisions.head().length
    with pytest.raises(AnotherAnswer, match="Nothing was recorded"):
        decide(revised)
    with pytest.raises(AnotherAnswer):
        decide(original, iteration=2)
    with pytest.raises(AnotherAnswer):
        decide(revised, run_id=None, iteration=None)
    with pytest.raises(AnotherAnswer):
        decide(revised, iteration=None)
    with pytest.raises(UnknownRecord):
        decide(revised, iteration=9)
    with pytest.raises(StoreError, match="belongs to case"):
        decide(revised, run_id=newest(workbench, OTHER).id)
    assert workbench.store.decisions.head().length == before


def test_an_approval_records_which_answer_was_shown(
    workbench: Workbench, client: TestClient
) -> None:
    answer = post(client, "decisions", right(workbench, 1))
    made = newest_decision(workbench)
    assert made.iteration == 2
    assert decided_about(made) == "revision 2"
    assert verdict_text(made) == "Approved revision 2"
    assert answer["done"] == f"Approved revision 2 of {CASE}"


def test_an_approval_records_the_listed_serious_issues(
    workbench: Workbench, client: TestClient
) -> None:
    issues = forms.serious_issues(newest(workbench), 0)
    assert issues
    post(client, "decisions", right(workbench))
    made = newest_decision(workbench)
    assert decided_about(made) == "the original answer"
    assert [each["id"] for each in made.extra["issues_seen"]] == [issue.id for issue in issues]
    assert {each["severity"] for each in made.extra["issues_seen"]} <= {"critical", "high"}


def test_a_decision_without_an_iteration_is_about_the_original_answer(
    workbench: Workbench,
) -> None:
    run = newest(workbench)
    assert run.final_answer != run.iterations[0].answer
    made = Decision(reviewer="Ada", case_id=CASE, run_id=run.id, iteration=None, verdict="approve")
    seen = having_seen(workbench, made)
    workbench.reviews.submit(ADA, seen, shown=answer_digest(run.iterations[0].answer))
    outcome = workbench.reviews.outcome(CASE)
    assert outcome.answer == run.iterations[0].answer
    assert verdict_text(outcome.decision) == "Approved the original answer"
    assert workbench.store.decisions.verify().intact
    undone = workbench.reviews.current(CASE)
    workbench.reviews.undo(ADA, undone.id)


def test_the_next_case_names_the_skipped_one_and_undo_brings_it_back(
    workbench: Workbench, client: TestClient
) -> None:
    other = workbench.store.cases.get(CASE).model_copy(update={"id": "other"})
    workbench.cases.add(ADA, [other])
    workbench.audits.audit(ADA, other)
    answer = post(client, "open", {"place": {"case": CASE}, "to": "skip"})
    place = answer["desk"]["place"]
    assert place["case"] != CASE
    assert answer["done"] == f"Skipped {CASE}. It comes back after the other cases"
    assert answer["message"] is None  # the desk shows what is done, with its undo
    assert workbench.team.work(ADA, CASE).skipped_by == (ADA.name,)
    back = post(client, "undo", {"place": place, "entry": answer["entry"]})
    assert back["desk"]["place"]["case"] == CASE
    assert back["message"]["text"] == f"Undone: skipped {CASE}. The undo is recorded in the log."
    assert workbench.team.work(ADA, CASE).skipped_by == ()


def test_a_decision_that_only_an_adjudication_can_change_offers_no_undo(
    workbench: Workbench, client: TestClient
) -> None:
    case = workbench.store.cases.get(OTHER).model_copy(update={"id": "shared"})
    workbench.team.put_in_force(ADA, QueuePolicy(reviewers=2))
    workbench.cases.add(ADA, [case])
    run = workbench.audits.audit(ADA, case)

    def form(name: str, token: str, *, advance: bool) -> Posted:
        view = workbench.cases.open("shared")
        client.headers["X-Masis-Reviewer"] = name
        return {
            "place": {"case": "shared"},
            "token": token,
            "seen": view.summary.version,
            "fields": {"verdict": "reject", "reason": "other", "other": "Fabricated."},
            "shown": dict(shown_answer(view.case, run, 0)),
            "advance": advance,
        }

    first = post(client, "decisions", form("Ben", "first", advance=False))
    workbench.team.put_in_force(ADA, QueuePolicy())  # the case keeps the policy that it has
    assert first["entry"]
    assert "Undo (U)" in first["message"]["text"]
    body = form("Cleo", "second", advance=True)
    # the policy in force didn't announce a second reviewer
    error = refused(client, body)
    assert "You are the last of 2 reviewers" in error["message"]
    second = post(client, "decisions", {**body, "confirmed": [error["confirms"]]})
    assert second["entry"] == ""
    assert second["desk"]["place"]["case"] != "shared"
    assert "only an adjudication can change it" in second["message"]["text"]


def test_after_the_last_search_result_the_full_queue_is_offered(client: TestClient) -> None:
    body = {"place": {"case": CASE}, "queue": {"text": "nowhere"}}
    message = post(client, "open", {**body, "to": "next"})["message"]
    assert (message["narrowed"], message["text"].endswith("a decision.")) == (True, True)
    # behind the end of the list, still
    message = post(client, "open", {**body, "to": "forward"})["message"]
    assert (message["text"], message["narrowed"]) == ("This is the last case of the list.", True)
    desk = post(client, "open", {**body, "to": "whole_queue"})["desk"]
    assert desk["place"]["case"] != CASE
    assert "text" not in desk["queue"]


def test_a_request_never_sees_more_than_its_reviewer(
    workbench: Workbench, client: TestClient
) -> None:
    queue = {"viewer": "Ben", "open_to": "Ben", "undecided_by": "Ben"}
    desk = post(client, "open", {"place": {"case": CASE}, "queue": queue})["desk"]
    assert not set(queue) & set(desk["queue"])


def test_a_revision_can_be_taken_as_the_correction(
    workbench: Workbench, client: TestClient
) -> None:
    for iteration in ("", "2"):
        body = {"place": {"case": CASE, "iteration": iteration}, "fields": {}, "token": "t"}
        answer = post(client, "revision", body)
        fields = workbench.drafts.get(ADA, case_subject(CASE)).values
        assert (fields["verdict"], fields["corrected"]) == (
            "override",
            newest(workbench).iterations[1].answer,
        )
        assert answer["desk"]["place"]["iteration"] == ""
        assert answer["message"]["where"] == "reason"
        workbench.drafts.clear(ADA, case_subject(CASE))


def test_a_correction_with_several_likely_mistakes_is_asked_about_once(
    workbench: Workbench, client: TestClient
) -> None:
    corrected = "Bridge 1 is long [chunk_77]."
    fields = {"verdict": "override", "corrected": corrected, "reason": "unclear"}
    body = right(workbench) | {"token": "left", "fields": fields, "left": ["i1"]}
    error = refused(client, body)
    assert "it cites “chunk_77”" in error["message"]
    assert "the serious issues that are left" in error["message"]
    post(client, "decisions", body | {"confirmed": [error["confirms"]], "left": []})
    harmless = {**fields, "corrected": "Bridge 1 is long."}
    body = right(workbench) | {"token": "left 2", "fields": harmless, "left": ["i1"]}
    error = refused(client, body)
    assert error["message"].startswith("Nothing was recorded. Read the serious issues")
    post(client, "decisions", body | {"confirmed": [error["confirms"]]})


def test_the_audit_of_a_revision_decides_which_issues_it_leaves(
    workbench: Workbench, client: TestClient
) -> None:
    run = newest(workbench)
    fields = {"verdict": "override", "corrected": run.iterations[1].answer, "reason": "unclear"}
    listed = [issue.id for issue in run.iterations[1].issues if issue.major]
    body = right(workbench) | {"token": "own audit", "fields": fields, "left": ["i1"]}
    question = "the serious issues that are left"
    assert (question in refused(client, body)["message"]) is bool(listed)
    # it has lost a citation, which is asked about, but the words of the original's issues aren't
    error = refused(client, body | {"acknowledged": listed})
    assert question not in error["message"]
    post(client, "decisions", body | {"confirmed": [error["confirms"]]})


def test_a_taken_revision_leaves_the_issues_of_its_own_audit(
    workbench: Workbench, client: TestClient
) -> None:
    revision = newest(workbench).iterations[1]
    body = {"place": {"case": CASE}, "fields": {}, "token": "t"}
    audited = post(client, "revision", body)["desk"]["check"]["audited"]
    assert audited["name"] == "revision 2"
    assert len(audited["issues"]) == len(numbered_issues(revision))
    listed = [name for row in audited["serious"] for name in row["ids"]]
    assert set(listed) == {issue.id for issue in revision.issues if issue.major}
    fields = {"verdict": "override", "corrected": f"{revision.answer} It is so."}
    post_draft = client.put("/api/v1/desk/draft", json={**body, "fields": fields}).json()
    assert post_draft["check"]["audited"] is None
    workbench.drafts.clear(ADA, case_subject(CASE))


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [
        ("original", "approved as it stands"),
        ("revision", "approved with the suggested revision"),
        ("taken", "replaced with the suggested revision"),
        ("typed", "replaced with own correction"),
    ],
)
def test_the_answer_that_is_valid_after_a_decision_is_named_wherever_it_is_shown(
    workbench: Workbench, client: TestClient, kind: str, outcome: str
) -> None:
    revision = newest(workbench).iterations[newest(workbench).best]
    assert newest(workbench).best == 1
    texts = {"taken": revision.answer, "typed": "Bridge 1 is long."}
    body = right(workbench, 1 if kind == "revision" else 0) | {"token": f"outcome {kind}"}
    if corrected := texts.get(kind):
        fields = {"verdict": "override", "corrected": corrected, "reason": "unclear"}
        confirmed = [f"correction {answer_digest(corrected)}"]
        body |= {"fields": fields, "confirmed": confirmed}
    desk = post(client, "decisions", body)["desk"]
    entry = workbench.reviews.current(CASE)
    (row,) = (row for row in desk["history"] if row["id"] == entry.id)
    assert desk["standing"]["outcome"] == row["outcome"] == outcome
    row = entry_row(entry, entry_context(workbench, entry))
    assert row["about"].endswith(f", {outcome}")
    report = case_report(workbench.cases.open(CASE), workbench.store.decisions.head())
    assert f"{outcome.capitalize()}." in report
    log = io.BytesIO()
    write_log_csv(workbench.store, log, DecisionFilter(case_id=CASE))
    assert outcome in log.getvalue().decode()
    assert f", {outcome}, by Ada" in _entry_line(entry)


def test_a_refused_decision_keeps_its_draft(workbench: Workbench, client: TestClient) -> None:
    typed = {"verdict": "override", "corrected": "Bridge 1 is 101 metres long."}
    error = refused(client, {**right(workbench), "token": "typed", "fields": typed})
    assert error["message"].startswith("A reason is missing: a correction needs one.")
    assert error["field"] == "reason"
    assert workbench.drafts.get(ADA, case_subject(CASE)).values["corrected"] == typed["corrected"]
    workbench.drafts.clear(ADA, case_subject(CASE))


def test_a_doubtful_correction_asks_once_and_is_recorded_on_resubmission(
    workbench: Workbench, client: TestClient
) -> None:
    corrected = f"{newest(workbench).iterations[0].answer} It is blue [chunk_77]."
    fields = {"verdict": "override", "corrected": corrected, "reason": "other", "other": "tried"}
    body = {**right(workbench, verdict="override"), "fields": fields}
    before = workbench.reviews.current(CASE)
    error = refused(client, body)
    assert "“chunk_77”, which names no evidence" in error["message"]
    assert workbench.reviews.current(CASE) == before
    # another correction is asked about again
    other = {**body, "fields": {**fields, "corrected": f"{corrected} No."}}
    assert refused(client, {**other, "confirmed": [error["confirms"]]})["confirms"]
    post(client, "decisions", {**body, "confirmed": [error["confirms"]]})
    assert newest_decision(workbench).corrected_answer == corrected
    assert newest_decision(workbench).extra["citations_kept"] == ["chunk_99", "chunk_77"]


def newest_decision(workbench: Workbench) -> Decision:
    entry = workbench.reviews.current(CASE)
    assert entry.decision.kind == "decision"
    return entry.decision
