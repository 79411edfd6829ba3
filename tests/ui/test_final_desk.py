"""A final verdict over the desk's API: what it takes from a reviewer, what is refused, what is undone."""

from __future__ import annotations

from hashlib import sha256
from typing import Any, cast

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from masis.schema.actor import Actor
from masis.schema.labels import LabelPassage, TargetLabel
from masis.schema.review import Decision, decision_outcome
from masis.schema.team import QueuePolicy
from masis.server.app import Server, api_route
from masis.services import Workbench
from masis.ui.review import desk_api  # noqa: F401 (adds its endpoints to the table)
from masis.ui.team.final_desk import decisions_on, differences
from masis.views.log_entries import adopted_decision_text
from tests.reviewing import decide
from tests.ui.conftest import AUDITED

ADA, BEN, CLEO = Actor(name="Ada Lind"), Actor(name="Ben"), Actor(name="Cleo")
CASE, OTHER = AUDITED[:2]
LABEL = TargetLabel(target="answer", label="other", severity="low")
Data = dict[str, Any]


@pytest.fixture
def workbench(audited_workbench: Workbench) -> Workbench:
    """Ada corrects and Ben rejects the answers of two cases."""
    audited_workbench.team.put_in_force(BEN, QueuePolicy(reviewers=2))
    for case_id in (CASE, OTHER):
        given = {"corrected_answer": "Stump.", "note": "See chunk 2.", "labels": (LABEL,)}
        decide(audited_workbench, case_id, "override", ADA.name, iteration=1, **given)
        decide(audited_workbench, case_id, "reject", BEN.name)
    return audited_workbench


@pytest.fixture
def client(workbench: Workbench) -> TestClient:
    return client_of(workbench)


def client_of(workbench: Workbench) -> TestClient:
    server = Server(lambda: workbench, lambda: pytest.fail("no job is needed"))
    headers = {"X-Masis-Reviewer": CLEO.name, "X-Masis-Request": "1"}
    return TestClient(Starlette(routes=[api_route(server)]), headers=headers)


def opened(client: TestClient, case_id: str = CASE, **more: Any) -> Data:
    place = {"case": case_id, "adjudication": True}
    response = client.post("/api/v1/desk/open", json={"place": place, **more})
    assert response.status_code == 200, response.text
    return cast("Data", response.json()["desk"])


def taken(desk: Data, number: int, **changes: Any) -> Data:
    """The form after a decision was taken and changed."""
    side = desk["final"]["sides"][number]
    names = ("verdict", "other", "note", "corrected", "taken", "wrote", "given")
    names += ("labels", "chunks", "missing", "reported")
    return desk["blank"] | {name: side[name] for name in names} | changes


def record(
    client: TestClient, desk: Data, fields: Data, status: int = 200, confirmed: tuple[str, ...] = ()
) -> Data:
    body = {"place": desk["place"], "fields": fields, "shown": desk["shown"], "seen": desk["seen"]}
    body["confirmed"] = list(confirmed)
    token = sha256(f"{desk['place']['case']} {desk['seen']} {fields}".encode()).hexdigest()
    response = client.post("/api/v1/desk/decisions", json={**body, "token": token, "seconds": 2.04})
    assert response.status_code == status, response.text
    return cast("Data", response.json() if status == 200 else response.json()["error"])


def final_of(workbench: Workbench, case_id: str = CASE) -> Decision:
    decision = workbench.cases.open(case_id).decision.decision
    assert decision.kind == "adjudication"
    return decision


def test_a_taken_decision_brings_its_labels_and_records_what_was_changed(
    workbench: Workbench, client: TestClient
) -> None:
    desk = opened(client)
    answer = record(client, desk, taken(desk, 0, other="One word was missing.", note="Two words."))
    final = final_of(workbench)
    assert (final.reviewer, final.verdict, final.corrected_answer) == ("Cleo", "override", "Stump.")
    assert (final.reason, final.note) == ("One word was missing.", "Two words.")
    assert (final.extra["taken_from"], final.extra["seconds"]) == ("Ada Lind", 2.0)
    assert final.labels == (LABEL,)
    decisions = decisions_on(workbench, CASE)
    assert adopted_decision_text(final, decisions) == "Ada Lind’s decision, with changes"
    assert len(decisions) == 2
    # the next one that waits is open at once
    assert answer["desk"]["place"] == {**desk["place"], "case": OTHER}
    assert answer["done"].startswith(f"{CASE}, “")
    assert not workbench.drafts.get(CLEO, f"adjudication:{CASE}").values


def test_labels_taken_over_are_edited_and_removed_with_their_evidence(
    workbench: Workbench, client: TestClient
) -> None:
    third = AUDITED[2]
    run = workbench.store.runs.get(workbench.cases.open(third).run.id)
    answer = run.iterations[0].answer
    chunk = workbench.cases.open(third).case.evidence[0]
    passage = LabelPassage(evidence_id=chunk.id, start=0, end=4, text=chunk.text[:4])
    start, end = run.iterations[0].claims[0].claim.start, run.iterations[0].claims[0].claim.end
    places = {"claim": (start, end), "sentence": (0, 3)}  # a program labels any words
    on_parts = [
        TargetLabel(
            target=target,
            start=at,
            end=to,
            text=answer[at:to],
            label=given,
            evidence=(passage,),
            note="Mine.",
        )
        for (target, (at, to)), given in zip(places.items(), ("supported", "uncited"), strict=True)
    ]
    others = [
        LABEL,
        TargetLabel(target="evidence", evidence_id=chunk.id, label="relevant"),
        TargetLabel(target="case", label="passage_missing", note="The annex."),
    ]
    labels = (*on_parts, *others)
    decide(workbench, third, "reject", ADA.name, iteration=1, run_id=run.id, labels=labels)
    decide(workbench, third, "approve", BEN.name)
    desk = opened(client, third)
    side = desk["final"]["sides"][0]
    base, rows = side["labelled"]["base"], {row["key"]: row for row in side["labelled"]["rows"]}
    claim, words = (f"{name}:{at}-{to}" for name, (at, to) in places.items())
    assert list(side["labels"][base]) == [claim, words]
    assert rows[words]["text"] == answer[:3]
    kept = taken(desk, 0)
    record(client, desk, kept)
    assert final_of(workbench, third).labels == labels  # in the same order, and with their notes
    assert adopted_decision_text(
        final_of(workbench, third), decisions_on(workbench, third)
    ).endswith("as it was")
    given = side["labels"][base]
    edited = {claim: {**given[claim], "label": "contradicted", "evidence": []}, words: given[words]}
    for changes, expected in (
        ({"labels": {base: edited}}, ["contradicted", "uncited", "other", "relevant"]),
        ({"labels": {base: {words: given[words] | {"label": "exempt"}}}}, ["exempt", "other"]),
        ({"labels": {}, "reported": {}, "chunks": {}, "missing": None}, []),
    ):
        settled = opened(client, third)
        record(client, settled, kept | changes | {"changing": True, "other": "Read again."})
        final = final_of(workbench, third)
        assert set(expected) <= {label.label for label in final.labels}
        assert len(final.labels) == {4: 5, 2: 4, 0: 0}[len(expected)]
    assert "with changes" in adopted_decision_text(final, decisions_on(workbench, third))


def test_a_final_verdict_that_lacks_something_is_refused_with_its_field(
    workbench: Workbench, client: TestClient
) -> None:
    desk = opened(client)
    for fields, field, words in (
        ({}, "verdict", "choose a verdict"),
        ({"verdict": "reject"}, "other", "a reason is missing"),
        ({"verdict": "escalate"}, "other", "every verdict except an approval needs one"),
        ({"verdict": "override", "other": "Why."}, "corrected", "Nothing was recorded"),
    ):
        error = record(client, desk, desk["blank"] | fields, 422)
        assert error["field"] == field
        assert words in error["message"]
    draft = workbench.drafts.get(CLEO, f"adjudication:{CASE}").values
    assert (draft["verdict"], draft["other"]) == ("override", "Why.")
    assert workbench.cases.summary(CASE).state == "needs_adjudication"


def test_a_final_correction_that_cites_what_does_not_exist_is_asked_about_once(
    workbench: Workbench, client: TestClient
) -> None:
    desk = opened(client)
    fields = taken(desk, 0, corrected="Stump [chunk_77].")
    error = record(client, desk, fields, 422)
    assert "cites “chunk_77”, which names no evidence" in error["message"]
    assert error["field"] == "corrected"
    assert workbench.cases.summary(CASE).state == "needs_adjudication"
    # another correction is asked about again
    other = taken(desk, 0, corrected="Stump [chunk_78].")
    assert record(client, desk, other, 422, (error["confirms"],))["confirms"]
    record(client, desk, fields, confirmed=(error["confirms"],))
    assert final_of(workbench).extra["citations_kept"] == ["chunk_77"]


def test_a_settled_verdict_can_be_changed_only_with_a_reason(
    workbench: Workbench, client: TestClient
) -> None:
    desk = opened(client)
    record(client, desk, taken(desk, 0))
    settled = opened(client)
    standing = settled["standing"]
    assert standing["who"] == "Cleo (Ada Lind’s decision, as it was)"
    assert (standing["why"], standing["note"]) == (
        "Ada Lind’s reason: read",
        "Ada Lind’s note: See chunk 2.",
    )
    assert standing["changes"]
    approved = settled["blank"] | {"verdict": "approve", "changing": True}
    assert "it replaces a verdict in force" in record(client, settled, approved, 422)["message"]
    record(client, settled, approved | {"other": "Chunk 2 has it after all."})
    assert workbench.cases.summary(CASE).state == "approved"
    undone = opened(client)["standing"]["id"]
    place = {"case": OTHER, "adjudication": True}
    answer = client.post("/api/v1/desk/undo", json={"place": place, "entry": undone}).json()
    assert "Undone: your verdict applies again (overridden)" in answer["message"]["text"]
    assert answer["desk"]["place"]["case"] == CASE
    assert workbench.cases.summary(CASE).state == "overridden"


def test_undo_brings_a_case_back_with_its_entries(workbench: Workbench, client: TestClient) -> None:
    desk = opened(client)
    fields = taken(desk, 0, other="Mine.")
    answer = record(client, desk, fields)
    body = {"place": answer["desk"]["place"], "entry": answer["entry"]}
    undone = client.post("/api/v1/desk/undo", json=body).json()
    assert undone["message"]["text"].startswith(f"Undone: {CASE} waits for you again, “")
    draft = undone["desk"]["draft"]
    assert {name: draft[name] for name in fields if name != "aside"} == {
        name: fields[name] for name in fields if name != "aside"
    }
    assert workbench.cases.summary(CASE).state == "needs_adjudication"
    again = record(client, undone["desk"], draft)
    assert again["entry"] != answer["entry"]
    assert final_of(workbench).labels == (LABEL,)


@pytest.mark.parametrize("blind", [True, False])
def test_only_those_who_saw_a_revision_are_said_to_have_taken_it(
    audited_workbench: Workbench, blind: bool
) -> None:
    client = client_of(audited_workbench)
    revised = audited_workbench.cases.open("strategy-01").run.iterations[1].answer
    policy = QueuePolicy(reviewers=2, machine="after" if blind else "first")
    audited_workbench.team.put_in_force(BEN, policy)
    given = {"corrected_answer": revised, "iteration": 1}
    decide(audited_workbench, "strategy-01", "override", ADA.name, **given)
    decide(audited_workbench, "strategy-01", "reject", BEN.name)
    # what others see later doesn't change what Ada had seen
    audited_workbench.team.put_in_force(BEN, QueuePolicy(reviewers=2))
    desk = opened(client, "strategy-01")
    record(client, desk, taken(desk, 0))
    (ada,) = (
        made for made in decisions_on(audited_workbench, "strategy-01") if made.reviewer == ADA.name
    )
    final = final_of(audited_workbench, "strategy-01")
    outcome = f"replaced with {'own correction' if blind else 'the suggested revision'}"
    assert decision_outcome(ada) == decision_outcome(final) == outcome


def test_text_typed_by_the_lead_isnt_attributed_to_a_reviewer(
    workbench: Workbench, client: TestClient
) -> None:
    desk = opened(client)
    record(client, desk, desk["blank"] | {"verdict": "reject", "other": "read", "note": "N."})
    standing = opened(client)["standing"]
    assert (standing["why"], standing["note"]) == ("Reason: read", "Note: N.")


def test_a_draft_is_kept_with_the_texts_that_were_replaced(
    workbench: Workbench, client: TestClient
) -> None:
    desk = opened(client)
    fields = taken(desk, 0) | {"aside": [{"verdict": "reject", "other": "Mine."}]}
    body = {"place": desk["place"], "fields": fields, "token": "t"}
    assert client.put("/api/v1/desk/draft", json=body).json()["saved_at"]
    draft = opened(client)["draft"]
    assert [each["other"] for each in draft["aside"]] == ["Mine."]
    assert draft["corrected"] == "Stump."
    listed = workbench.drafts.with_drafts(CLEO, [CASE], lambda case_id: f"adjudication:{case_id}")
    assert listed == {CASE}


def test_decisions_of_others_stay_hidden_until_all_are_in(
    audited_workbench: Workbench, client: TestClient
) -> None:
    third = AUDITED[2]
    decide(audited_workbench, third, "reject", ADA.name, reason="a secret reason")
    place = {"case": third, "adjudication": True}
    fields = {"verdict": "reject", "other": "Mine."}
    for path, more in (
        ("open", {}),
        ("decisions", {"fields": fields, "token": "t", "shown": {}, "seen": 1}),
    ):
        response = client.post(f"/api/v1/desk/{path}", json={"place": place, **more})
        assert response.status_code == 400
        assert "isn't waiting for an adjudication" in response.text
        assert "secret" not in response.text


def test_a_reviewer_of_a_case_cannot_adjudicate_it(
    workbench: Workbench, client: TestClient
) -> None:
    client.headers["X-Masis-Reviewer"] = BEN.name
    desk = opened(client)
    assert not desk["final"]["can"]
    fields = desk["blank"] | {"verdict": "reject", "other": "Mine."}
    body = {"place": desk["place"], "fields": fields, "shown": desk["shown"], "seen": desk["seen"]}
    response = client.post("/api/v1/desk/decisions", json={**body, "token": "t"})
    assert response.status_code >= 400
    assert "you decided this case yourself" in response.text
    assert workbench.cases.summary(CASE).state == "needs_adjudication"


def test_the_audit_stays_hidden_from_a_blind_lead(workbench: Workbench, client: TestClient) -> None:
    seen = opened(client)
    assert seen["reporting"]["title"] == "Issues that the audit missed"
    assert "The issues raised are wrong" in seen["final"]["reasons"]["approve"]
    workbench.team.put_in_force(BEN, QueuePolicy(reviewers=2, machine="never"))
    desk = opened(client)
    assert desk["reporting"]["title"] == "Issues that reviewers reported"
    assert desk["final"]["reasons"]["approve"] == ["Checked against the evidence"]
    assert desk["view"]["issues"] == []
    assert desk["place"]["case"] == CASE
    body = {"place": desk["place"], "fields": {"verdict": "approve"}, "token": "t"}
    assert client.put("/api/v1/desk/draft", json=body).json()["check"] is None


def test_cases_to_adjudicate_are_numbered_and_opened_one_after_another(
    workbench: Workbench, client: TestClient
) -> None:
    third = AUDITED[2]  # which Cleo decided herself
    decide(workbench, third, "approve", ADA.name)
    decide(workbench, third, "reject", CLEO.name)
    assert opened(client)["go"]["says"] == "2 left for you"
    client.headers["X-Masis-Reviewer"] = "Dora"
    desk = opened(client)
    assert desk["go"]["says"] == "3 left for you"
    seen = [desk["place"]["case"]]
    for _ in range(3):
        seen.append(opened(client, seen[-1], to="next")["place"]["case"])
    assert len(set(seen)) == 3
    assert seen[0] == seen[3], "the first comes after the last"
    first = opened(client, seen[0], to="back") if seen[0] != AUDITED[0] else None
    while first is not None:
        place = {"case": first["place"]["case"], "adjudication": True}
        answer = client.post("/api/v1/desk/open", json={"place": place, "to": "back"}).json()
        if answer["message"]:
            assert answer["message"]["text"] == "This is the first case waiting for adjudication."
        first = answer["desk"]


def test_an_approval_names_and_records_the_serious_issues_left_open(
    workbench: Workbench, client: TestClient
) -> None:
    run = workbench.cases.open(CASE).run
    serious = [issue.id for issue in run.iterations[0].issues if issue.major]
    assert serious
    desk = opened(client)
    assert [each["serious"] for each in desk["final"]["sides"]] == [len(serious)] * 2
    assert "approve" not in desk["final"]["optional"]  # no reviewer did
    record(client, desk, desk["blank"] | {"verdict": "approve", "other": "Both are too strict."})
    assert [each["id"] for each in final_of(workbench).extra["issues_seen"]] == serious


def test_entries_for_a_case_settled_by_another_lead_stay_a_draft(
    workbench: Workbench, client: TestClient
) -> None:
    desk = opened(client)
    client.headers["X-Masis-Reviewer"] = "Dora"
    record(client, opened(client), taken(desk, 1))
    client.headers["X-Masis-Reviewer"] = CLEO.name
    error = record(client, desk, taken(desk, 0, other="Mine."), 409)
    assert error["message"].endswith(
        "Press M to see your entries and to give another final verdict."
    )
    assert opened(client)["draft"]["other"] == "Mine."
    assert final_of(workbench).reviewer == "Dora"


@pytest.mark.parametrize("adjudication", [True, False])
def test_the_token_of_another_persons_decision_is_refused(
    workbench: Workbench, client: TestClient, adjudication: bool
) -> None:
    desk = opened(client)
    record(client, desk, taken(desk, 0))
    token = final_of(workbench).token
    if not adjudication:
        token = "of Ada"
        decide(workbench, AUDITED[2], "reject", ADA.name, token=token)
    place = desk["place"] if adjudication else {"case": AUDITED[2]}
    client.headers["X-Masis-Reviewer"] = "Dora"
    now = client.post("/api/v1/desk/open", json={"place": place}).json()["desk"]
    fields = now["blank"] | {"verdict": "escalate", "other": "Mine.", "note": "Mine."}
    body = {"place": place, "fields": fields, "shown": now["shown"], "seen": now["seen"]}
    response = client.post("/api/v1/desk/decisions", json={**body, "token": token})
    assert response.status_code == 400
    assert "belongs to another decision on this case" in response.text


def test_the_cause_of_a_disagreement_is_recorded_with_a_sentence_for_the_rubric(
    workbench: Workbench, client: TestClient
) -> None:
    desk = opened(client)
    assert [cause["code"] for cause in desk["final"]["causes"]] == ["slip", "ambiguous", "gap"]
    fields = taken(desk, 0, cause="gap", sentence=" Round to  whole metres. ")
    record(client, desk, fields)
    final = final_of(workbench)
    assert (final.cause, final.rubric_sentence) == ("gap", "Round to whole metres.")
    assert opened(client)["standing"]["cause"] == "Cause: a gap in the guideline"


def test_a_sentence_without_a_gap_and_an_unknown_cause_are_dropped(
    workbench: Workbench, client: TestClient
) -> None:
    desk = opened(client)
    record(client, desk, taken(desk, 0, cause="slip", sentence="Kept in the form only."))
    assert (final_of(workbench).cause, final_of(workbench).rubric_sentence) == ("slip", "")
    desk = opened(client, OTHER)
    record(client, desk, taken(desk, 0, cause="<script>"))
    assert final_of(workbench, OTHER).cause is None


def test_notes_and_the_correction_of_one_reviewer_are_no_disagreement(workbench: Workbench) -> None:
    override, reject = decisions_on(workbench, CASE)
    same = {"reason": override.reason, "labels": override.labels}
    assert differences([override, reject.model_copy(update=same)]) == ("verdict",)
    other = override.model_copy(update={"corrected_answer": "Stem.", "note": "See chunk 1."})
    assert differences([override, other]) == ("correction",)
    assert differences([override, override.model_copy(update={"note": ""})]) == ()


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("A permit for a garage of up to 20 square metres is decided within weeks", "is decided…”"),
        ("**Cause.**", "“Cause.”"),
        ("It is `E42`, *or*\nso.", "“It is E42, or so.”"),
        ("2 * 3 * 4", "“2 * 3 * 4”"),
    ],
)
def test_words_that_name_a_difference_are_whole_and_without_markup(words: str, named: str) -> None:
    report = {"target": "span", "start": 0, "end": len(words), "text": words, "severity": "low"}
    made = {"reviewer": "Ada", "case_id": "1", "run_id": None, "verdict": "reject"}
    one = Decision.model_validate({**made, "labels": [{**report, "label": "other"}]})
    (difference,) = differences([one, one.model_copy(update={"labels": ()})])
    assert difference.startswith("issues reported in “")
    assert difference.endswith(named)


def test_an_approval_without_a_reason_doesnt_differ_in_the_reason() -> None:
    reject = Decision(reviewer="A", case_id="1", run_id=None, verdict="reject", reason="Why.")
    approve = reject.model_copy(update={"verdict": "approve", "reason": ""})
    override = reject.model_copy(update={"verdict": "override", "reason": "Other."})
    assert differences([reject, approve]) == ("verdict",)
    assert differences([reject, override]) == ("verdict", "reason")
    assert differences([approve, approve.model_copy(update={"reason": "Read."})]) == ("reason",)


def test_a_side_names_a_chunk_once_and_no_cause_that_nobody_chose(
    workbench: Workbench, client: TestClient
) -> None:
    third = AUDITED[2]
    run = workbench.cases.open(third).run
    chunk = workbench.cases.open(third).case.evidence[0].id
    claim = run.iterations[0].claims[0].claim
    on_claim = TargetLabel(
        target="claim", start=claim.start, end=claim.end, text=claim.text, label="contradicted"
    )
    labels = (TargetLabel(target="evidence", evidence_id=chunk, label="relevant"), on_claim)
    decide(workbench, third, "reject", ADA.name, iteration=1, labels=labels)
    decide(workbench, third, "approve", BEN.name)
    lines = opened(client, third)["final"]["sides"][0]["lines"]
    assert f"{chunk}: relevant" in lines
    assert not any("cause" in line for line in lines)
