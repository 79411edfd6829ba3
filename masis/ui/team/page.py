"""The page of the team: progress, what needs adjudication, giving out cases, policy, rubric and label types."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

import streamlit as st
from pydantic import ValidationError

from masis.schema.actor import Actor
from masis.schema.team import (
    MOST_REVIEWERS,
    LabelType,
    LabelTypes,
    MachineShown,
    PolicyRule,
    QueuePolicy,
    Rubric,
    RubricScore,
    TeamRecord,
)
from masis.schema.wording import counted
from masis.services import Workbench
from masis.services.cases import waiting_in
from masis.services.records import CaseFilter
from masis.services.trust_summary import figure, in_words
from masis.trust.agreement import Agreement, Pair
from masis.ui.components.linked_table import Cell, column, linked_table, row
from masis.ui.queue.case_list import who_decided
from masis.ui.queue.overview import standing_counts
from masis.ui.shell import address
from masis.ui.shell.permissions import carried_out, needs
from masis.ui.shell.reviewer import actor, reviewer
from masis.ui.team.adjudication import VERDICT_DIFFERS, decisions_on, show_adjudication, what_differs
from masis.ui.team.taking import ask_name
from masis.views.markdown import escaped

T = TypeVar("T", bound=TeamRecord)

MOST_LISTED = 100
PAIRS_SAID = 3
"""Pairs of reviewers, those with most cases in common, whose agreement the page says in words."""

RULES: dict[PolicyRule, str] = {
    "adjudicated": "The verdict all give; else an adjudication",
    "agree": "The verdict enough of them give; else an adjudication",
    "first": "The first decision; the others measure agreement",
}
MACHINE: dict[MachineShown, str] = {
    "first": "At once",
    "after": "After their own decision",
    "never": "Not before the case is decided",
}


def show_team(workbench: Workbench) -> None:
    """Draw the page; a case in the address is shown for adjudication."""
    if case_id := address.value("case"):
        show_adjudication(workbench, case_id)
        return
    st.title("Team")
    ask_name(workbench)
    _progress(workbench)
    sections = {"Adjudication": _differing}
    if reviewer() is None:
        st.caption("Type your name to give out cases and to change policy and rubric.")
    else:
        sections |= {"Give out cases": _give_out, "Policy": _policy, "Rubric": _rubric, "Label types": _label_types}
    for tab, draw in zip(st.tabs(list(sections)), sections.values(), strict=True):
        with tab:
            draw(workbench)


def _progress(workbench: Workbench) -> None:
    """Draw where all cases stand, how far reviewers agree, and who has decided how many."""
    st.header("Progress")
    me = actor()
    facets = workbench.cases.facets_for(me)
    standing_counts(facets.standings, facets.states, adjudications=workbench.team.adjudications(me))
    count = workbench.team.count_open(me, CaseFilter())
    st.page_link("pages/queue.py", label=f"{counted(count, 'case')} can be decided by you now", disabled=not count)
    if workbench.access.allows(me, "read") and (found := workbench.trust.people(me)).agreement.units:
        what = "settled case" if workbench.cases.hides_machine_from(me) else "case"
        agree = [pair_agrees(pair, what) for pair in found.pairs[:PAIRS_SAID]]
        st.markdown("  \n".join([*agree, beyond_chance(found.agreement)]))
        st.page_link("pages/trust.py", label="Agreement in detail", query_params={"view": "people"})
    adjudicated = workbench.trust.decisions_by(me, "adjudication")
    decided, assigned = workbench.trust.decisions_by(me), workbench.store.team.counted("assigned")
    held = {lease.reviewer: lease for lease in workbench.team.leases(me)}
    rows = []
    for name in sorted({*decided, *adjudicated, *assigned, *held}, key=str.casefold):
        who: Cell = {"text": name}
        if assigned.get(name):
            who |= {"href": address.link("queue", assignee=address.in_words([name]))}
        at_work: Cell = {"text": "–"}
        if name in held:
            at_work = {"text": held[name].case_id, "below": [f"until {held[name].until[11:16]} UTC"]}
        rows.append(row(who, decided.get(name, 0), adjudicated.get(name, 0), assigned.get(name, 0), at_work))
    if not rows:
        st.caption("Nobody has decided a case yet.")
        return
    columns = [
        *(column("Reviewer", "main"), column("Decisions", "figure")),
        *(column("Adjudications", "figure"), column("Cases assigned", "figure"), column("At work on")),
    ]
    linked_table(columns, rows, description="Reviewers", key="team-progress")
    st.caption(
        f"An escalation is a decision, and its case waits. {workbench.trust.counts_in_words(me)} "
        "Cases assigned: all of them, decided or not."
    )


def pair_agrees(pair: Pair, case: str) -> str:
    """Say in plain words how far two reviewers agree, and on what kind of case."""
    same, of = round((pair.raw.value or 0) * pair.raw.n), pair.raw.n
    who = f"{escaped(pair.first)} and {escaped(pair.second)}"
    return f"{who} gave the same verdict in {same:,} of {counted(of, case)} ({same / max(1, of):.0%})."


def beyond_chance(found: Agreement) -> str:
    """Say what agreement is left when chance is taken off, and what the figure means."""
    return f"{in_words(found.alpha).capitalize()}. Krippendorff's alpha: {figure(found.alpha, share=False)}"


def _differing(workbench: Workbench) -> None:
    page = workbench.cases.find_for(
        actor(), CaseFilter(states=("needs_adjudication",), order="oldest", size=MOST_LISTED)
    )
    if not page.total:
        st.caption("No case has reviewers who differ. Such cases are listed here once all their decisions are in.")
        return
    individual = {summary.id: decisions_on(workbench, summary.id) for summary in page.rows}
    kinds = Counter(what_differs(decisions) for decisions in individual.values())
    which = ", ".join(f"{kinds[kind]:,} {'differ' if kinds[kind] > 1 else 'differs'} in {kind}" for kind in kinds)
    listed = "" if page.total == len(page.rows) else f"Of the first {len(page.rows):,}, "
    st.markdown(
        f"{counted(page.total, 'case has', 'cases have')} reviewers who differ. {listed}{which}. "
        "Open one to decide between them."
    )
    rows = []
    for summary in page.rows:
        decisions = individual[summary.id]
        differ = what_differs(decisions)
        question: Cell = {
            "text": summary.query,
            "href": address.link("team", case=summary.id),
            "open": summary.id,
            "below": [summary.id],
        }
        below = [] if differ == VERDICT_DIFFERS else [f"{differ.removeprefix('the ').capitalize()} differs"]
        rows.append(
            row(question, {"text": ", ".join(who_decided(workbench, summary.id)), "below": below}, open=summary.id)
        )
    columns = [column("Question", "main"), column("Verdicts")]
    if opened := linked_table(columns, rows, description="Cases that need adjudication", key="differing"):
        address.put("case", opened)
        st.rerun()


def _give_out(workbench: Workbench) -> None:
    text = st.text_input("Cases that hold these words", key="give-text", max_chars=address.LONGEST_QUERY)
    waiting = waiting_in(CaseFilter(text=text, order="oldest", size=MOST_LISTED))
    page = workbench.cases.find_for(actor(), waiting)
    if not page.total:
        st.caption("No case that waits holds these words." if text else "No case waits: there is none to give out.")
        return
    titles = {summary.id: f"{summary.id} · {summary.query}"[:120] for summary in page.rows}
    team, counts = workbench.team, workbench.store.team.counted
    actions: dict[str, _Action] = {
        "Assign": _Action("Reviewers", team.reviewers(), team.assign, new=True),
        "Unassign": _Action("Reviewers", counts("assigned"), team.unassign),
        "Tag": _Action("Tags", counts("tagged"), team.tag, new=True),
        "Remove tag": _Action("Tags", counts("tagged"), team.untag),
        "Skip": _Action("", (), lambda who, cases, _: team.skip(who, cases)),
    }
    action = actions[st.segmented_control("Do", list(actions), default="Assign", required=True) or "Assign"]
    with st.form("give-out", border=False):
        first = f", the first {len(titles):,} are listed" if page.total > len(titles) else ""
        chosen = st.multiselect(
            f"Cases that wait ({page.total:,}{first})",
            list(titles),
            format_func=titles.__getitem__,
            key="give-out-cases",
        )
        names: list[str] = []
        if action.names:
            hint = "Choose or type a name" if action.new else "Choose"
            names = st.multiselect(action.names, list(action.known), accept_new_options=action.new, placeholder=hint)
        sent = st.form_submit_button("Do this to all chosen cases", **needs("decide"))
    if sent and carried_out(lambda: action.do(actor(), chosen, names)):
        st.success(f"Done for {counted(len(chosen), 'case')}; each is an entry of the decision log.")


class _Action(NamedTuple):
    """What can be done to many cases at once: the names it takes, those known, whether it takes new ones."""

    names: str
    known: Iterable[str]
    do: Callable[[Actor, list[str], list[str]], object]
    new: bool = False


def _policy(workbench: Workbench) -> None:
    now = workbench.store.team.in_force(QueuePolicy)
    st.caption(
        f"Version {now.version}. A case that has a decision keeps how many decide it and which verdict stands. "
        "What reviewers see of the machine changes at once, on every case."
    )
    # no form: what a choice asks for, and what it would change, show before it is set
    with st.container(width=560):
        reviewers = st.number_input("Reviewers a case", 1, MOST_REVIEWERS, now.reviewers)
        share = st.slider(
            "Share of the cases that several reviewers decide", 0, 100, round(100 * now.share), format="%d %%"
        )
        rule = st.selectbox(
            "Which verdict stands", RULES, index=list(RULES).index(now.rule), format_func=RULES.__getitem__
        )
        agree = now.agree
        if rule == "agree":
            agree = st.number_input("How many have to agree", 1, MOST_REVIEWERS, now.agree)
        machine = st.selectbox(
            "When a reviewer sees what the machine found",
            MACHINE,
            index=list(MACHINE).index(now.machine),
            format_func=MACHINE.__getitem__,
        )
        minutes = st.number_input("Minutes that an opened case stays with its reviewer", 1, 24 * 60, now.lease_minutes)
        if effect := _hides(workbench, now.machine, machine):
            st.warning(effect)
        sent = st.button("Set this policy", key="set-policy", **needs("oversee"))
    chosen = {"reviewers": reviewers, "share": share / 100, "rule": rule, "agree": agree, "machine": machine}
    policy = {**chosen, "lease_minutes": minutes, "seed": now.seed}
    _set(workbench, QueuePolicy, lambda: QueuePolicy.model_validate(policy), sent=sent)


def _hides(workbench: Workbench, now: MachineShown, then: MachineShown) -> str:
    """Say what setting another moment to see the machine hides from everybody; "" where it hides no more than now."""
    if list(MACHINE).index(then) <= list(MACHINE).index(now):
        return ""
    states = workbench.cases.facets_for(actor()).states
    undecided = sum(states.get(state, 0) for state in ("needs_review", "needs_adjudication", "accepted"))
    until = "who has not decided them" if then == "after" else "until they are decided"
    return (
        f"Once set, marks and scores of {counted(undecided, 'undecided case')} are hidden from everybody {until}, "
        "from you and other adjudicators too, also where decisions were begun. Pages name no reviewers and count "
        "decisions on settled cases only; Metrics is closed while cases are hidden from you. Setting it back shows "
        "all again."
    )


def _set(workbench: Workbench, kind: type[T], record: Callable[[], T], *, sent: bool) -> None:
    """Set a record of the team where its button was pressed, and say so once it is in force."""
    done = f"team-set-{kind.__name__}"
    if sent and carried_out(lambda: workbench.team.set(actor(), record())):
        st.session_state[done] = True
        st.rerun()
    if st.session_state.pop(done, False):
        st.success(f"Done: version {workbench.store.team.in_force(kind).version} is in force from now on.")


RUBRIC_HELP = "One score a line: name: 1-5, or name: word, word. Guidance may follow after a |."


def _rubric(workbench: Workbench) -> None:
    now = workbench.store.team.in_force(Rubric)
    st.caption(f"Version {now.version}. Decisions keep their scores with the version they were given under.")
    with st.form("rubric", border=False):
        guidelines = st.text_area("Guidelines, shown beside every case", now.guidelines, max_chars=20_000, height=160)
        lines = st.text_area("Scores", "\n".join(map(score_line, now.scores)), help=RUBRIC_HELP, max_chars=20_000)
        sent = st.form_submit_button("Set this rubric", **needs("oversee"))
    _set(workbench, Rubric, lambda: Rubric(guidelines=guidelines.strip(), scores=read_scores(lines)), sent=sent)


def read_scores(lines: str) -> tuple[RubricScore, ...]:
    """Return the scores that are written one a line (``RUBRIC_HELP``). Raises ValueError naming the line."""
    scores = []
    for line in filter(str.strip, lines.splitlines()):
        what, _, guidance = line.partition("|")
        name, colon, values = what.rpartition(":")
        low, dash, high = (each.strip() for each in values.partition("-"))
        if not colon or not name.strip():
            raise ValueError(f"“{line.strip()[:80]}” is no score. {RUBRIC_HELP}")
        content: dict[str, object] = {"name": name.strip(), "guidance": guidance.strip()}
        if dash and low.isdecimal() and high.isdecimal():
            content |= {"low": int(low), "high": int(high)}
        else:
            content["categories"] = tuple(word.strip() for word in values.split(",") if word.strip())
        scores.append(RubricScore.model_validate(content))
    return tuple(scores)


def score_line(score: RubricScore) -> str:
    """Return a score as ``read_scores`` reads it."""
    values = ", ".join(score.categories) if score.categories else f"{score.low}-{score.high}"
    return f"{score.name}: {values}" + (f" | {score.guidance}" if score.guidance else "")


LABEL_TYPES_HELP = "One type a line: name, or name | guidance."


def _label_types(workbench: Workbench) -> None:
    now = workbench.store.team.in_force(LabelTypes)
    st.caption(
        f"Version {now.version}. The types of issues that reviewers report by labelling words of an answer. "
        "Decisions keep theirs with the version they were set under."
    )
    with st.form("label-types", border=False):
        lines = st.text_area(
            "Types", "\n".join(map(type_line, now.types)), help=LABEL_TYPES_HELP, max_chars=20_000, height=200
        )
        sent = st.form_submit_button("Set these label types", **needs("oversee"))
    _set(workbench, LabelTypes, lambda: LabelTypes(types=read_types(lines)), sent=sent)


def read_types(lines: str) -> tuple[LabelType, ...]:
    """Return the label types that are written one a line (``LABEL_TYPES_HELP``). Raises ValueError naming the line."""
    types = []
    for line in filter(str.strip, lines.splitlines()):
        name, _, guidance = (each.strip() for each in line.partition("|"))
        try:
            types.append(LabelType(name=name, guidance=guidance))
        except ValidationError as error:
            raise ValueError(
                f"“{line.strip()[:80]}” is no label type: a name has 1 to 60 characters, guidance up to 500. "
                f"{LABEL_TYPES_HELP}"
            ) from error
    if not types:
        raise ValueError(f"There is no label type: name at least one. {LABEL_TYPES_HELP}")
    return tuple(types)


def type_line(label_type: LabelType) -> str:
    """Return a label type as ``read_types`` reads it."""
    return label_type.name + (f" | {label_type.guidance}" if label_type.guidance else "")
