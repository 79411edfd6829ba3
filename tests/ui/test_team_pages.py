"""The page of the team and the desk for several people, as Streamlit runs them."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from masis.schema.actor import Actor
from masis.schema.labels import TargetLabel
from masis.schema.review import Decision
from masis.schema.team import LabelTypes, Lease, QueuePolicy, Rubric, RubricScore
from masis.services import Workbench
from masis.services.audits import POLICY
from masis.services.drafts import case_subject, subjects_of_case
from masis.services.records import CaseFilter, DecisionFilter
from masis.services.team import EmptyQueue
from masis.ui.components import linked_table
from masis.ui.components.linked_table import column, row
from masis.ui.queue.case_list import ASSIGNED_TO_YOU, case_row
from masis.ui.shell.keys import adjudication_keys, key_map, page_key_map
from masis.ui.shell.reviewer import TAKEN_CASE_KEY
from masis.ui.team.final_desk import differences
from masis.ui.team.leases import explain_empty_queue
from masis.ui.team.page import read_scores, read_types, score_line, type_line
from masis.views.words import NOT_AUDITED
from tests.reviewing import decide
from tests.ui.conftest import AUDITED, open_page, press, texts

ADA, BEN = Actor(name="Ada Lind"), Actor(name="Ben")
CASE = "strategy-01"
ACCEPTED = "policy-01"


def open_as(name: str, reviewer: str = "Ada Lind", **address: str) -> AppTest:
    return open_page(name, {"reviewer-name": reviewer}, **address)


def accept(workbench: Workbench) -> None:
    """Let the policy accept a case, as a model's audit would have it."""
    run = workbench.cases.summary(ACCEPTED).run_id
    assert run is not None
    entry = Decision(
        kind="policy_accept", source="CODE", reviewer=POLICY.name, case_id=ACCEPTED, run_id=run
    )
    workbench.store.decisions.append(entry)
    assert workbench.cases.summary(ACCEPTED).state == "accepted"


def shown_rows(app: AppTest) -> str:
    """Return what the page hands to the browser for its components."""
    return "\n".join(str(element.proto) for element in app.main if hasattr(element, "proto"))


def components(app: AppTest, name: str) -> list[Any]:
    """Return what the components of a name are given."""
    return [
        json.loads(component.proto.json)
        for component in app.get("bidi_component")
        if name in component.proto.id
    ]


def cells(app: AppTest, table: str) -> list[list[Any]]:
    """Return what the rows of a table hold."""
    (data,) = components(app, table)
    return [row["cells"] for row in data["rows"]]


def test_opening_a_case_leases_it_and_opening_another_releases_it(
    audited_workbench: Workbench,
) -> None:
    app = open_as("review", case=CASE)
    assert [(lease.case_id, lease.reviewer) for lease in audited_workbench.store.team.leases()] == [
        (CASE, "Ada Lind")
    ]
    app.query_params["case"] = "docs-02"
    app.run()
    assert [lease.case_id for lease in audited_workbench.store.team.leases()] == ["docs-02"]


def rename(name: str, reviewer: str, **session: object) -> None:
    """Change the name of a session that has a case open."""

    def script(given: str) -> None:
        from masis.ui.shell.reviewer import name_reviewer
        from masis.ui.shell.served_database import served_workbench

        name_reviewer(served_workbench(), given)

    app = AppTest.from_function(script, kwargs={"given": name}, default_timeout=20)
    for key, held in {"reviewer-name": reviewer, **session}.items():
        app.session_state[key] = held
    app.query_params["case"] = CASE
    app.run()
    assert not app.exception


def test_renaming_the_reviewer_keeps_the_open_case_and_its_draft(
    audited_workbench: Workbench,
) -> None:
    open_as("review", case=CASE)
    drafts, renamed = audited_workbench.drafts, Actor(name="Ada Lovelace")
    for subject in (*subjects_of_case(CASE), case_subject("docs-02"), "new-audit"):
        drafts.save(ADA, subject, {"note": subject})
    open_work = {TAKEN_CASE_KEY: CASE, "open-forms": {"new-audit"}}
    rename("Ada Lovelace", ADA.name, **open_work)
    assert [lease.reviewer for lease in audited_workbench.store.team.leases()] == ["Ada Lovelace"]
    for subject in (*subjects_of_case(CASE), "new-audit"):
        assert drafts.get(renamed, subject).values == {"note": subject}
        assert not drafts.get(ADA, subject).values
    # another browser may go by the old name: what is open there stays
    assert drafts.get(ADA, case_subject("docs-02")).values
    assert "has taken case" not in shown_rows(open_as("review", "Ada Lovelace", case=CASE))
    rename(ADA.name, "Ada Lovelace", **open_work)
    assert [lease.reviewer for lease in audited_workbench.store.team.leases()] == [ADA.name]
    assert drafts.get(ADA, case_subject(CASE)).values == {"note": case_subject(CASE)}


def test_a_case_leased_by_another_shows_their_name_and_time(audited_workbench: Workbench) -> None:
    lease = audited_workbench.team.claim(BEN, CASE)
    said = shown_rows(open_as("review", case=CASE))
    assert "Ben has taken case" in said
    assert lease.until[11:16] in said


def test_the_name_is_asked_only_before_the_first_case(
    audited_workbench: Workbench,
) -> None:
    open_page("review", case=CASE)
    assert audited_workbench.store.team.leases() == ()
    app = open_page("team")
    app.text_input(key="name-first-field").input("Ada Lind")
    press(app, "Start reviewing")
    assert app.session_state["reviewer-name"] == "Ada Lind"
    assert not [field for field in app.text_input if field.key == "name-first-field"]


def test_a_disagreement_is_listed_and_adjudicated(
    audited_workbench: Workbench,
) -> None:
    audited_workbench.team.put_in_force(BEN, QueuePolicy(reviewers=2))
    decide(audited_workbench, CASE, "approve", ADA.name, extra={"seconds": 40.0})
    decide(audited_workbench, CASE, "reject", BEN.name)
    team = open_as("team", "Cleo")
    assert shown_rows(team).count("median 40") == 1
    assert "1 case has reviewers who disagree. 1 differs in the verdict." in texts(team)
    assert "Ada Lind and Ben gave the same verdict in 0 of 1 case (0%)." in texts(team)
    assert "the share of these that also ended with this person's answer" in texts(team)
    # as Trust says it
    assert "1 case, too few to tell how strong the agreement beyond chance is." in texts(team)
    assert "Ada Lind: Approved, Ben: Rejected" in shown_rows(team)
    assert cells(team, "team-verdicts") == [
        ["Ada Lind: Approved", None, 1],
        ["Ada Lind: Rejected", None, None],
    ]
    assert (
        cells(team, "differing")[0][1]["pills"][0]["text"]
        == audited_workbench.cases.summary(CASE).severity
    )
    leads = open_as("team", "Cleo")
    review = leads.button(key="team-review")
    cleo = Actor(name="Cleo")
    assert review.label.startswith(
        f"Review {audited_workbench.team.count_open(cleo, CaseFilter())} cases"
    )
    first = audited_workbench.team.next_open(cleo, CaseFilter())
    press(leads, review.label)
    assert leads.query_params["case"] == first != CASE
    leads = open_as("team", "Cleo")
    press(leads, "Adjudicate 1 case")
    assert leads.query_params["case"] == CASE
    assert not [
        button for button in open_as("team", "Ben").button if button.label.startswith("Adjudicate")
    ]
    audited_workbench.team.put_in_force(BEN, QueuePolicy(reviewers=2, machine="never"))
    blind = open_as("team", "Cleo")
    assert "Ada Lind: Approved" not in shown_rows(blind)
    assert "The audit:" not in texts(open_as("team", "Cleo", case=CASE))
    audited_workbench.team.put_in_force(BEN, QueuePolicy(reviewers=2))
    app = open_as("team", "Cleo", case=CASE)
    shown = texts(app)
    case = audited_workbench.store.cases.get(CASE)
    data = shown_rows(app)
    (desk,) = components(app, "-desk")
    sides = [(side["name"], side["label"]["text"]) for side in desk["final"]["sides"]]
    assert sides == [("Ada Lind", "Approved"), ("Ben", "Rejected")]
    assert desk["final"]["can"]
    for part in ("fabricated", (case.answer or "").splitlines()[0], case.evidence[-1].text[:23]):
        assert part in data
    assert "**The audit:** :red[Cites" in shown
    (theirs,) = components(open_as("team", "Ben", case=CASE), "-desk")
    assert theirs["notice"]["text"] == "Decided by Ada Lind and Ben. Anybody else can adjudicate."
    assert not theirs["final"]["can"]
    assert f"{CASE} · the reviewers differ in the verdict" in shown.replace("\\", "").splitlines()
    final = Decision(
        kind="adjudication",
        reviewer="Cleo",
        case_id=CASE,
        run_id=audited_workbench.cases.open(CASE).summary.run_id,
        iteration=1,
        verdict="reject",
        reason="Ben is right.",
    )
    audited_workbench.reviews.adjudicate(cleo, final)
    cleos = next(row for row in cells(open_as("team"), "team-progress") if row[0]["text"] == "Cleo")
    ways = [
        parse_qs(case["href"].partition("?")[2])
        for case in cleos[1:]
        if isinstance(case, dict) and "href" in case
    ]
    assert ways == [{"kind": ["adjudication"], "reviewer": ["Cleo"]}]
    assert len(audited_workbench.reviews.individual(CASE)) == 2
    (reopened,) = components(open_as("team", "Cleo", case=CASE), "-desk")
    standing = reopened["standing"]
    assert (standing["who"], standing["why"]) == ("Cleo", "Reason: Ben is right.")
    assert standing["undoable"]
    assert "Rejected by Cleo as final verdict: Ben is right." in shown_rows(
        open_as("review", "Dora", case=CASE)
    )


def differing(workbench: Workbench, *case_ids: str) -> None:
    """Let Ada correct and Ben reject the answers of cases."""
    workbench.team.put_in_force(BEN, QueuePolicy(reviewers=2))
    for case_id in case_ids:
        note = {"corrected_answer": "Stump.", "note": "Ada: see chunk 2.", "iteration": 1}
        decide(workbench, case_id, "override", ADA.name, **note)
        decide(workbench, case_id, "reject", BEN.name)


def test_an_escalated_case_is_marked_and_stays_listed(audited_workbench: Workbench) -> None:
    differing(audited_workbench, CASE)
    final = Decision(
        kind="adjudication",
        reviewer="Cleo",
        case_id=CASE,
        run_id=None,
        verdict="escalate",
        reason="Ask the author.",
    )
    audited_workbench.reviews.adjudicate(Actor(name="Cleo"), final)
    (desk,) = components(open_as("team", "Cleo", case=CASE), "-desk")
    assert desk["standing"]["what"] == "Escalated"
    assert desk["standing"]["when"] == "it waits for more evidence or another reviewer"
    assert desk["go"]["says"] == "None left for you"
    team = open_as("team", "Cleo")
    assert cells(team, "team-progress")[2][7]["below"][0] == "0 settled, 1 escalated"
    assert "1 case is escalated and waits for more evidence or another reviewer." in texts(team)
    rows = shown_rows(team)
    for part in ("Escalated by", "Cleo", "Ask the author.", "nobody", f"team?case={CASE}"):
        assert part in rows
    press(team, "give-escalated")
    assert team.query_params["view"] in ("assign cases", ["assign cases"])
    assert team.session_state["give-out-cases"] == [CASE]
    next(select for select in team.multiselect if select.label == "Reviewers").set_value(
        ["Ada Lind"]
    ).run()
    assert f"{CASE} isn't assigned to Ada Lind, who decided it already." in texts(team).replace(
        "\\", ""
    )
    assert team.button(key="give-out").disabled
    next(select for select in team.multiselect if select.label == "Reviewers").set_value(
        ["Emil"]
    ).run()
    press(team, "Assign 1 case to Emil")
    assert audited_workbench.team.work(BEN, CASE).assignees == ("Emil",)
    assert "Emil" in shown_rows(team).partition("Escalated cases")[2]
    audited_workbench.team.assign(ADA, [CASE], ["Dora"])
    said = [link.proto.label for link in open_as("overview", "Dora").get("page_link")]
    assert "1 is assigned to you" in said
    assert "1 is assigned to you" not in [
        link.proto.label for link in open_as("overview").get("page_link")
    ]  # she decided it


def test_keys_that_act_on_a_hidden_audit_arent_listed() -> None:
    for made in (key_map, adjudication_keys):
        every, blind = (
            {shown for group in made(sees_audit=sees) for shown, _ in group["keys"]}
            for sees in (True, False)
        )
        assert {"F", "Shift F", "Y"} <= every
        assert not {"F", "Shift F", "I", "Shift W", "Z", "D", "[", "]"} & blind
        assert {"L", "U", "H or ?"} <= blind


def test_adjudication_keys_are_listed_on_its_page_and_named_on_lists() -> None:
    shown = adjudication_keys()
    assert [group["title"] for group in shown] == [
        "Adjudicate",
        "View and navigate",
        "While you label (L)",
    ]
    assert ("N or J", "Next case that needs your adjudication") in shown[1]["keys"]
    assert "Adjudicate" not in [group["title"] for group in page_key_map("team")["keys"]]
    for page, there in (("team", True), ("queue", True), ("metrics", False)):
        assert (
            any("its adjudication" in does for _, does in page_key_map(page)["keys"][0]["keys"])
            is there
        )


def test_the_url_opens_a_team_view_and_highlights_a_field(
    audited_workbench: Workbench,
) -> None:
    app = open_as("team", view="policy", field="machine")
    assert app.session_state["team-view"] == "Policy"
    app = open_as("team")
    assert app.session_state["team-view"] == "Progress"
    assert "The default applies." in texts(app)
    audited_workbench.team.put_in_force(BEN, QueuePolicy(reviewers=2, machine="after"))
    said = texts(open_as("team", view="policy")).replace("\\", "")
    assert "Version 1, set by Ben on" in said
    assert (
        "Reviewers per case: 1 → 2\nWhen reviewers see the audit: At once → After their own" in said
    )


def test_agreement_and_its_table_use_the_same_names(audited_workbench: Workbench) -> None:
    audited_workbench.team.put_in_force(BEN, QueuePolicy(reviewers=2, machine="after"))
    for name in (ADA.name, BEN.name):
        decide(audited_workbench, CASE, "approve", name)
    assert "Ada Lind and Ben gave the same verdict" in texts(open_as("team", "Cleo"))


def test_no_page_shows_a_hidden_audit_result(audited_workbench: Workbench) -> None:
    audited_workbench.team.put_in_force(BEN, QueuePolicy(machine="after"))
    for app in (
        open_as("review", case=CASE),
        open_as("compare", case=CASE),
        open_as("queue"),
        open_as("overview"),
    ):
        said = texts(app)
        assert "fabricated" not in said.replace(CASE, "")
        assert "iteration" not in [group.key for group in app.button_group]
    said = texts(open_as("review", case=CASE))
    assert NOT_AUDITED not in said


def test_summary_pages_hide_audit_results_from_blind_reviewers_and_say_why(
    audited_workbench: Workbench,
) -> None:
    accept(audited_workbench)
    drawer = {"reviewer-name": "Ada Lind", "metrics-filters": True}
    assert open_page("metrics", drawer).multiselect
    assert ACCEPTED in shown_rows(open_as("decisions"))
    audited_workbench.team.put_in_force(BEN, QueuePolicy(machine="after"))
    queue, metrics, log, datasets = (
        open_as(name) for name in ("queue", "metrics", "decisions", "datasets")
    )
    for app in (queue, metrics, log, open_as("overview")):
        assert "policy hides audit results from you" in texts(app)
    assert not open_page("metrics", drawer).multiselect
    order = next(select for select in queue.selectbox if select.key == "order")
    assert (
        order.value,
        set(order.options) & {"Most serious first", "Most disagreement first"},
    ) == (
        "random",
        set(),
    )
    assert not [
        select for select in queue.multiselect if select.label in ("Model", "Reason for review")
    ]
    assert not [slider for slider in queue.slider if slider.label in ("Quality", "Confidence")]
    pills = next(group for group in queue.button_group if group.key == "standing")
    assert list(pills.options) == ["Needs review 5", "Not audited 2"]
    assert not [button for button in queue.button if button.key == "export-prepare"]
    everything = len(audited_workbench.cases.find(CaseFilter()).rows)
    assert f"{everything} undecided cases" in texts(open_as("queue", flag="invalid_reference"))
    assert ACCEPTED not in shown_rows(log)
    assert not datasets.exception
    for name in ("settings", "overview"):
        counts = {link.proto.query_string for link in open_as(name).get("page_link")}
        assert "standing=to_review" in counts
        assert not {"standing=wrong", "standing=nothing_found"} & counts
    run = audited_workbench.cases.open(CASE).summary.run_id or ""
    assert "Decide the case first" in texts(open_as("new", job=run, case=CASE))


def test_the_log_hides_acceptances_from_blind_reviewers(
    audited_workbench: Workbench,
) -> None:
    audited_workbench.team.put_in_force(BEN, QueuePolicy(machine="after"))
    hidden = DecisionFilter(blind_to=ADA.name)
    accept(audited_workbench)
    assert audited_workbench.reviews.entries(DecisionFilter(kinds=("policy_accept",))).total == 1
    assert audited_workbench.reviews.entries(hidden).total == 0
    decide(audited_workbench, ACCEPTED, reviewer=ADA.name)
    listed = audited_workbench.reviews.entries(hidden).rows
    assert [entry.decision.kind for entry in listed if entry.decision] == [
        "decision",
        "policy_accept",
    ]


def test_a_reviewers_name_links_to_their_assigned_cases(
    audited_workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    audited_workbench.team.assign(ADA, [CASE], ["Ben, Dr"])
    (name, *_), *_ = cells(open_as("team"), "team-progress")
    assert "open" not in name
    # what its click sends
    monkeypatch.setattr(
        linked_table, "_TABLE", lambda **_: SimpleNamespace(open=name["href"], act=None)
    )
    gone: list[tuple[str, object]] = []
    monkeypatch.setattr(
        st, "switch_page", lambda page, query_params: gone.append((page, query_params))
    )
    linked_table.linked_table([column("Reviewer")], [row(name)], description="Reviewers", key="r")
    assert gone == [("pages/queue.py", {"assignee": "Ben%2C Dr"})]


def test_policy_rubric_and_assignments_are_set_on_the_page(audited_workbench: Workbench) -> None:
    app = open_as("team")
    assert next(button for button in app.button if button.key == "set-policy").disabled
    app.number_input[0].set_value(3).run()
    assert (app.number_input[0].label, app.number_input[0].value) == (
        "Reviewers per case :orange[(not set yet)]",
        3,
    )
    assert "1 choice is not set yet." in texts(app)
    press(app, "Set this policy")
    assert "not set yet" not in texts(app) + app.number_input[0].label
    assert audited_workbench.store.team.in_force(QueuePolicy).reviewers == 3
    done = "Version 1 is now in force. Reviewers per case: 1 → 3"
    assert done in [success.value for success in app.success]
    assert next(field for field in app.number_input if "have to agree" in field.label).disabled
    assert not app.warning
    captions = [text for radio in app.radio for text in radio.proto.captions]
    assert any("give a reason unless they approve as a reviewer did" in text for text in captions)
    machine = next(radio for radio in app.radio if radio.label.startswith("When reviewers"))
    machine.set_value("after").run()
    warned = "undecided cases from everyone who hasn't decided them. That includes you"
    assert warned in app.warning[0].value
    press(app, "discard-policy")
    assert not app.warning
    assert (
        next(radio for radio in app.radio if radio.label.startswith("When reviewers")).value
        == "first"
    )
    assert app.button(key="set-policy").disabled
    assert app.button(key="set-rubric").disabled
    type_into(app, "Rubric-Scores", "Clarity: 1-5 | 5 is best")
    press(app, "Set this rubric")
    assert audited_workbench.store.team.in_force(Rubric).scores == (
        RubricScore(name="Clarity", low=1, high=5, guidance="5 is best"),
    )
    assert app.button(key="set-rubric").disabled
    type_into(app, "Rubric-Scores", "Clarity")
    press(app, "Set this rubric")
    assert audited_workbench.store.team.in_force(Rubric).version == 1
    warnings = "\n".join(str(warning.value) for warning in app.warning).replace("\\", "")
    assert "isn't a score" in warnings
    assert "fabricated citation | cites evidence" in shown_rows(app)
    type_into(app, "LabelTypes-Types", "too long | over 300 words\nrude")
    press(app, "Set these label types")
    assert audited_workbench.store.team.in_force(LabelTypes).names == ("too long", "rude")
    type_into(app, "LabelTypes-Types", "rude\nRude")
    press(app, "Set these label types")
    assert audited_workbench.store.team.in_force(LabelTypes).version == 1
    assert "two label types have the same name" in "\n".join(
        str(warning.value) for warning in app.warning
    )
    audited_workbench.team.assign(ADA, ["docs-02"], ["Ben"])
    app.run()
    assert "Assigned and not settled: Ben 1." in texts(app)
    cases, names = app.multiselect
    worst = audited_workbench.cases.summary(CASE).severity
    assert any(f"{worst} · {CASE} · " in option for option in cases.options)
    assert (names.label, names.options) == ("Reviewers", ["Ben"])
    assert "first" not in cases.label  # all are listed
    assert app.button(key="give-out").disabled


def test_an_assignment_is_previewed_confirmed_and_undone_exactly(
    audited_workbench: Workbench,
) -> None:
    team = audited_workbench.team
    team.assign(ADA, ["docs-02"], ["Ben"])
    team.assign(ADA, ["home-01"], ["Cleo"])
    decide(audited_workbench, CASE, "escalate", "Ben")
    app = open_as("team", view="assign cases")
    cases, names = app.multiselect
    assert cases.options[0].startswith("Escalated, decided by Ben · ")
    for at in range(3):
        cases.select(cases.options[at])
    names.select("Ben").select("Cleo").run()
    shown = texts(app).replace("\\", "")
    assert f"{CASE} isn't assigned to Ben, who decided it already." in shown
    # not of what is escalated, which waits for one more, nor of what nobody has
    assert (
        "These cases have as many reviewers as the policy asks for: docs-02." in shown.splitlines()
    )
    before = dict(team.loads())
    label = app.button(key="give-out").label
    press(app, "give-out")
    after = team.loads()
    gained = {name: after[name] - before.get(name, 0) for name in ("Ben", "Cleo")}
    assert label.replace("\\", "") == "Assign 1 case to Ben, 3 cases to Cleo"
    assert f"Ben +{gained['Ben']}, Cleo +{gained['Cleo']}" in texts(app).replace("\\", "")
    assert [row[-2] for row in cells(app, "team-progress")[:2]] == [after["Ben"], after["Cleo"]]
    press(app, "give-back")
    assert team.loads() == before
    assert "Ben −1" in texts(app)


def test_the_two_reviewers_who_agree_least_are_compared(
    audited_workbench: Workbench,
) -> None:
    audited_workbench.team.put_in_force(ADA, QueuePolicy(reviewers=3))
    for name, verdict in ((ADA.name, "approve"), (BEN.name, "approve"), ("Cleo", "reject")):
        decide(audited_workbench, CASE, verdict, name)
    app = open_as("team")
    alike = "Ada Lind and Ben: 1 of 1 alike"
    assert app.selectbox(key="team-pair").options[0] != alike
    app.selectbox(key="team-pair").select(alike).run()
    assert cells(app, "team-verdicts") == [["Ada Lind: Approved", 1]]


def type_into(app: AppTest, field: str, text: str) -> None:
    """Type into a field of a record of the team: the draft of the version in force."""
    app.session_state[f"team-{field}"] |= {str(number): text for number in range(3)}
    app.run()


def test_the_policy_sets_when_reviewers_see_which_system_answered(
    audited_workbench: Workbench,
) -> None:
    app = open_as("team", view="policy")
    radio = next(part for part in app.radio if "which system answered" in part.label)
    radio.set_value("after").run()
    press(app, "Set this policy")
    assert audited_workbench.store.team.in_force(QueuePolicy).systems == "after"
    assert "After their preference" in texts(open_as("team", view="policy"))


@pytest.mark.parametrize(
    ("reviewers", "says"),
    [
        (2, "This is the same as the rule above, because 2 of 2 reviewers"),
        (3, "Needs fewer adjudications"),
    ],
)
def test_an_unchanged_rule_says_so_and_the_policy_names_the_needed_role(
    audited_workbench: Workbench, reviewers: int, says: str
) -> None:
    audited_workbench.team.put_in_force(ADA, QueuePolicy(reviewers=reviewers))
    app = open_as("team")
    rule = next(radio for radio in app.radio if radio.label == "How the verdict is decided")
    assert rule.proto.captions[1].startswith(says)
    assert "anyone who types a name can set the policy and adjudicate" in texts(app)


@pytest.mark.parametrize("line", ["Clarity: 1-5 | 5 is best", "Tone: plain, stilted", "A: b: 0-10"])
def test_rubric_scores_round_trip(line: str) -> None:
    assert [score_line(score) for score in read_scores(f"\n{line}\n")] == [line]


@pytest.mark.parametrize("line", ["rude", "too long | over 300 words", "a: b | c | d"])
def test_label_types_round_trip(line: str) -> None:
    assert [type_line(label_type) for label_type in read_types(f"\n{line}\n")] == [line]


@pytest.mark.parametrize("lines", ["", " \n", "| guidance only", "n" * 61])
def test_lines_without_a_label_type_are_rejected_with_a_hint(lines: str) -> None:
    with pytest.raises(ValueError, match="One type per line"):
        read_types(lines)


def test_an_adjudication_lists_only_the_differences() -> None:
    claim = TargetLabel(target="claim", start=0, end=3, text="Two", label="supported")
    place = {"target": "span", "start": 0, "end": 3, "text": "Two"}
    high = TargetLabel.model_validate({**place, "label": "unsupported", "severity": "high"})
    low = TargetLabel.model_validate({**place, "label": "other", "severity": "low"})
    whole = TargetLabel(target="answer", label="incomplete", severity="low")
    labels = (claim, low, high, whole)
    one = Decision(
        reviewer="Ada", case_id="1", run_id=None, verdict="approve", iteration=1, labels=labels
    )
    assert differences((one, one.model_copy(update={"labels": labels[::-1]}))) == ()
    unsupported = claim.model_copy(update={"label": "unsupported"})
    other = one.model_copy(
        update={"iteration": 2, "labels": (unsupported, high), "reason": "Read.", "note": "Odd."}
    )
    other = other.model_copy(update={"corrected_answer": "Three", "rubric_scores": {"Clarity": 1}})
    assert differences((one, other)) == (
        *("approved answer", "reason", "score Clarity", "claim “Two”"),
        *("issues reported in “Two”", "issues reported in the whole answer"),
    )


def test_the_waiting_message_depends_on_who_may_adjudicate(
    audited_workbench: Workbench,
) -> None:
    audited_workbench.team.put_in_force(BEN, QueuePolicy(reviewers=2))
    decide(audited_workbench, CASE, "approve", ADA.name)
    decide(audited_workbench, CASE, "reject", BEN.name)
    for name, says in (
        ("Cleo", "Waiting for you to adjudicate"),
        (BEN.name, "Waiting for an adjudication"),
    ):
        for page in ("queue", "overview"):
            app = open_as(page, name)
            links = {link.proto.label: link.proto.query_string for link in app.get("page_link")}
            mine = [way for label, way in links.items() if "for you to adjudicate" in label]
            assert mine == ([f"case={CASE}"] if name == "Cleo" else [])
        rows = shown_rows(open_as("queue", name))
        assert ("Ben: Rejected" in rows) == (name == "Cleo")
        assert says in rows
        assert (f"team?case={CASE}" in rows) is (name == "Cleo")


def test_an_empty_queue_says_why() -> None:
    lease = Lease(case_id="c7", reviewer="Ben", taken_at="", until="2026-01-01T10:45:00.000Z")
    full = EmptyQueue(
        waiting=9, decided=1, skipped=2, held=(lease,), assigned={"Cleo": 3}, elsewhere=0
    )
    said = explain_empty_queue(full)
    for part in (
        "9 cases",
        "1 case you've decided",
        "c7 by Ben until 10:45 UTC",
        "3 to Cleo",
        "2 cases you skipped",
    ):
        assert part in said
    assert explain_empty_queue(EmptyQueue(0, 0, 0, (), {}, 4)).startswith(
        "Nothing left to decide in this search"
    )
    assert "Import more cases" in explain_empty_queue(EmptyQueue(0, 0, 0, (), {}, 0))


def test_a_case_assigned_to_me_is_marked_and_counted(audited_workbench: Workbench) -> None:
    lead, mine = Actor(name="Lead"), "docs-02"
    audited_workbench.team.assign(lead, [mine], ["Ada, PhD"])
    rows = audited_workbench.cases.find(CaseFilter(states=("needs_review",))).rows
    own_work = audited_workbench.store.team.own_work_among
    assert own_work("Ada, PhD", [row.id for row in rows]) == {(mine, "assigned")}
    assert not own_work(lead.name, [row.id for row in rows])
    summary = audited_workbench.cases.summary(mine)
    (_, *_), (marked, *_) = (
        case_row(summary, {})["cells"],
        case_row(summary, {}, marks=[ASSIGNED_TO_YOU])["cells"],
    )
    assert [pill["text"] for pill in marked["pills"]] == ["assigned to you"]
    app = open_as("overview", reviewer="Ada, PhD")
    (link,) = [link.proto for link in app.get("page_link") if "assigned to you" in link.proto.label]
    assert link.label == "1 is assigned to you"
    assert parse_qs(link.query_string) == {"assignee": ["Ada%2C PhD"]}


def test_a_case_can_be_assigned_to_a_known_reviewer(
    audited_workbench: Workbench,
) -> None:
    audited_workbench.team.assign(ADA, ["docs-02"], ["Ben"])
    app = open_as("review", case=CASE)
    field = next(select for select in app.multiselect if select.label == "Assign to")
    assert field.options == ["Ben"]
    field.select("Ben")
    press(app, "Assign")
    assert audited_workbench.team.work(ADA, CASE).assignees == ("Ben",)
    assert "Assign to Ben: done" in texts(app).replace("\\", "")
    tags = next(select for select in app.multiselect if select.label == "Tags")
    tags.set_value(["urgent, drug"])
    press(app, "Tag")
    assert audited_workbench.team.work(ADA, CASE).tags == ("drug", "urgent")


def test_the_more_menu_starts_with_harmless_actions_and_ends_with_redaction(
    audited_workbench: Workbench,
) -> None:
    app = open_as("review", case=CASE)
    shown = [
        button.label
        for button in app.button
        if button.key in ("assign-me", "give-back", "redact-case-button")
    ]
    assert shown[:2] == ["Assign to me", "Release this case"]
    assert (
        next(
            expander for expander in app.expander if expander.label == "Redact this case"
        ).proto.expanded
        is False
    )
    app.button(key="assign-me").click().run()
    assert audited_workbench.team.work(ADA, CASE).assignees == ("Ada Lind",)
    assert app.button(key="assign-me").label == "Unassign me"
    app.button(key="assign-me").click().run()
    assert audited_workbench.team.work(ADA, CASE).assignees == ()
    assert [lease.reviewer for lease in audited_workbench.store.team.leases()] == ["Ada Lind"]
    app.button(key="give-back").click().run()
    assert audited_workbench.store.team.leases() == ()


def test_a_disputed_case_links_to_its_adjudication(
    audited_workbench: Workbench,
) -> None:
    audited_workbench.team.put_in_force(BEN, QueuePolicy(reviewers=2))
    app = open_as("review", case=CASE)
    assert not links_to_team(app)
    assert (
        "2 reviewers decide this case. Once all have decided, no decision on it can be undone."
        in shown_rows(app)
    )
    decide(audited_workbench, CASE, "approve", ADA.name)
    decide(audited_workbench, CASE, "reject", BEN.name)
    says = "All reviewers have decided this case, but they disagree. It waits for adjudication"
    app = open_as("review", "Cleo", case=CASE)
    assert f"{says}." in shown_rows(app)
    assert links_to_team(app) == {f"case={CASE}"}
    app = open_as("review", case=CASE)  # nobody adjudicates a case they decided
    assert f"{says} by somebody else." in shown_rows(app)
    assert not links_to_team(app)
    assert links_to_team(app, "Compare the reviewers' decisions") == {f"case={CASE}"}


def test_a_case_without_open_decisions_says_so_instead_of_showing_a_form(
    audited_workbench: Workbench,
) -> None:
    audited_workbench.team.put_in_force(BEN, QueuePolicy(reviewers=2))
    decide(audited_workbench, CASE, "reject", "Cy")
    decide(audited_workbench, CASE, "reject", BEN.name)
    for app in (open_as("review", case=CASE), open_as("review", "Cleo", case=CASE)):
        assert "Decided by Cy and Ben. This case needs no more decisions." in shown_rows(app)
        assert links_to_team(app) == {f"case={CASE}"}


def test_an_escalated_case_says_what_it_waits_for(audited_workbench: Workbench) -> None:
    audited_workbench.team.put_in_force(BEN, QueuePolicy(reviewers=2))
    decide(audited_workbench, CASE, "escalate", "Cy")
    decide(audited_workbench, CASE, "escalate", BEN.name)
    rows = shown_rows(open_as("review", case=CASE))
    assert "Escalated by Cy and Ben. It waits for a new version with more evidence" in rows
    assert "needs no more decisions" not in rows


def links_to_team(app: AppTest, label: str = "Adjudicate it") -> set[str]:
    links = [link.proto for link in app.get("page_link")]
    return {link.query_string for link in links if link.label == label}


def test_rubric_names_arent_rendered_as_markdown(audited_workbench: Workbench) -> None:
    name = "![i](http://evil.example/a.png)"
    audited_workbench.team.put_in_force(
        BEN, Rubric(scores=(RubricScore(name=name, categories=(name, "plain")),))
    )
    [score] = [
        group for group in open_as("review", case=CASE).button_group if "evil" in group.label
    ]
    for label in (score.label, *score.options):
        assert "![i](" not in label


def test_a_proposed_sentence_is_listed_and_added_to_the_rubric(
    audited_workbench: Workbench,
) -> None:
    [case_id] = [row.id for row in audited_workbench.cases.find(CaseFilter(size=1)).rows]
    audited_workbench.team.put_in_force(Actor(name="Ada"), QueuePolicy(reviewers=2))
    decide(audited_workbench, case_id, "approve", "Ada")
    decide(audited_workbench, case_id, "reject", "Ben")
    run = audited_workbench.cases.open(case_id).run
    final = Decision(
        kind="adjudication",
        reviewer="Lea",
        case_id=case_id,
        run_id=run.id if run else None,
        verdict="reject",
        reason="says more",
        cause="gap",
        rubric_sentence="Round *all* figures.",
    )
    audited_workbench.reviews.adjudicate(Actor(name="Lea"), final)
    app = open_page("team", {"reviewer-name": "Ada"})
    assert "a gap in the guideline 1" in texts(app)
    [accept] = [button for button in app.button if button.label == "Add to the guidelines"]
    [sentence] = [area for area in app.text_area if area.label.startswith("Sentence from Lea")]
    assert sentence.value == "Round *all* figures."
    accept.click().run()
    assert not app.exception
    assert audited_workbench.store.team.in_force(Rubric).guidelines == "Round *all* figures."
    assert not [button for button in app.button if button.label == "Add to the guidelines"]


def test_agreement_says_that_cases_to_adjudicate_dont_count_yet(
    audited_workbench: Workbench,
) -> None:
    first, second, *_ = AUDITED
    audited_workbench.team.put_in_force(BEN, QueuePolicy(reviewers=2, machine="after"))
    for name in (ADA.name, BEN.name):
        decide(audited_workbench, first, "approve", name)
    assert "once adjudicated" not in texts(open_as("team", "Cleo"))
    decide(audited_workbench, second, "approve", ADA.name)
    decide(audited_workbench, second, "reject", BEN.name)
    said = texts(open_as("team", "Cleo"))
    assert "gave the same verdict in 1 of 1 settled case (100%)" in said
    assert "1 case on which reviewers differ counts only once adjudicated" in said
