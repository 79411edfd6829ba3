"""The Team page: progress, adjudications, assignment, policy, rubric and label types."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

import streamlit as st
from pydantic import ValidationError
from streamlit.delta_generator import DeltaGenerator

from masis.errors import MasisError
from masis.schema.actor import Actor
from masis.schema.review import LONGEST_SENTENCE
from masis.schema.team import (
    MOST_REVIEWERS,
    LabelType,
    LabelTypes,
    MachineShown,
    QueuePolicy,
    Rubric,
    TeamRecord,
)
from masis.schema.wording import count_noun
from masis.services import ANONYMOUS, Workbench
from masis.services.cases import waiting_in
from masis.services.decision_rules import CAUSES
from masis.services.drafts import adjudication_subject
from masis.services.records import CaseFilter, CaseSummary
from masis.services.team import AssignmentPlan
from masis.services.trust.service import ReviewerStats
from masis.services.trust.summary import UPHELD, agreement_base_text, agreement_text
from masis.trust.agreement import Pair
from masis.ui.components.linked_table import TableCell, column, linked_table, row
from masis.ui.queue.case_list import severity_cell, verdicts_by_reviewer
from masis.ui.queue.overview import draw_standing_counts
from masis.ui.shell import address
from masis.ui.shell.inputs import typing_area
from masis.ui.shell.permissions import button_state, run_action
from masis.ui.shell.reviewer import actor, reviewer
from masis.ui.team.adjudication import show_adjudication
from masis.ui.team.final_desk import decisions_on, differences
from masis.ui.team.leases import ask_name
from masis.ui.team.queues import draw_queues
from masis.ui.team.tokens import draw_tokens
from masis.views.markdown import escape_markdown
from masis.views.numbers import duration, moment
from masis.views.policy_words import (
    ALL_OF_THEM,
    MACHINE,
    RUBRIC_HELP,
    RULES,
    SYSTEMS,
    read_scores,
    score_line,
)
from masis.views.words import DECIDED, WAITS_FOR_YOU

T = TypeVar("T", bound=TeamRecord)
Choice = TypeVar("Choice", bound=str)

MOST_LISTED = 100
PAIRS_SAID = 3
"""How many pairs of reviewers are described in words, those with the most common cases first."""

CHOICES: dict[str, str] = {
    "reviewers": "Reviewers per case",
    "share": "Share of cases with several reviewers",
    "rule": "How the verdict is decided",
    "agree": "Reviewers who have to agree",
    "machine": "When reviewers see the audit",
    "systems": "When reviewers see which system answered",
    "lease_minutes": "Minutes that an opened case is reserved",
    "seed": "Random seed for the cases with several reviewers",
}
"""The titles of the policy's fields by name. The address can name a field to highlight."""
MOST_VERSIONS = 20
ESCALATED = CaseFilter(states=("escalated",), order="oldest", size=MOST_LISTED)


def show_team(workbench: Workbench) -> None:
    """Draw the Team page, or the adjudication of the case in the address."""
    if case_id := address.value("case"):
        show_adjudication(workbench, case_id)
        return
    st.title("Team", anchor=False)
    ask_name(workbench)
    sections = {"Progress": _draw_progress}
    if reviewer() is None:
        st.caption("Type your name to assign cases and to change the policy and the rubric.")
    else:
        sections |= {
            "Assign cases": _draw_assignment,
            "Queues": draw_queues,
            "Policy": _draw_policy,
            "Rubric": _draw_rubric,
            "Label types": _draw_label_types,
            "Tokens": draw_tokens,
        }
    opened = next(
        (title for title in sections if title.casefold() == address.value("view")), "Progress"
    )
    tabs = st.tabs(list(sections), default=opened, key="team-view", on_change=_store_view)
    for tab, draw in zip(tabs, sections.values(), strict=True):
        with tab:
            draw(workbench)


def _store_view() -> None:
    chosen = st.session_state["team-view"].casefold()
    address.set_param("view", "" if chosen == "progress" else chosen)
    address.set_param("field", "")


def _draw_progress(workbench: Workbench) -> None:
    """Draw the progress of all cases, the reviewers, disagreements and escalated cases."""
    me = actor()
    facets = workbench.cases.facets_for(me)
    draw_standing_counts(facets.standings, facets.states, minor=facets.minor)
    count = workbench.team.count_open(me, CaseFilter())
    adjudications = workbench.team.adjudications(me, size=1)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        # a button, because Streamlit's page link to the present page doesn't change the address
        if adjudications.total:
            st.button(
                f"Adjudicate {count_noun(adjudications.total, 'case')}",
                icon=":material/balance:",
                type="primary",
                on_click=address.set_param,
                args=("case", adjudications.rows[0].id),
                help=WAITS_FOR_YOU.meaning,
            )
        label = f"Review {count_noun(count, 'case')} that you can decide now"
        pressed = count and st.button(label, icon=":material/rate_review:", key="team-review")
        # the case is looked up only after the click
        if pressed and (first := workbench.team.next_open(me, CaseFilter())):
            st.switch_page("pages/review.py", query_params={"case": first})
    _draw_people(workbench)
    _draw_differing(workbench)
    _draw_escalated(workbench)


def _draw_people(workbench: Workbench) -> None:
    """Draw the agreement of the reviewers, and a table with the figures of each."""
    me = actor()
    st.header("Reviewers", anchor=False)
    sees_all, pairs = workbench.access.allows(me, "oversee"), list[Pair]()
    # people who can see everybody's figures in the table see names in the sentences above it, too
    if (
        workbench.access.allows(me, "read")
        and (people := workbench.trust.people(me, names=sees_all)).agreement.units
    ):
        noun = "settled case" if workbench.cases.hides_machine_from(me) else "case"
        pairs = people.pairs
        lines = [pair_text(pair, noun) for pair in pairs[:PAIRS_SAID]]
        st.markdown(
            "  \n".join([*lines, f"{agreement_text(people.agreement.alpha).capitalize()}."])
        )
        st.caption(agreement_base_text(people.decisions, people.simulated))
        if noun != "case" and (waiting := _count_differing(workbench)):
            st.caption(
                f"{count_noun(waiting, 'case')} on which reviewers differ"
                f" {'counts' if waiting == 1 else 'count'} only once adjudicated, so these figures"
                " are too high until then."
            )
    adjudicated = workbench.trust.decisions_by(me, "adjudication")
    decided = workbench.trust.decisions_by(me)
    assigned = workbench.store.team.count_cases("assigned", undecided=True)
    stats_by_name = {
        stats.reviewer: stats for stats in workbench.trust.reviewers(me, others=sees_all)
    }
    held = {lease.reviewer: lease for lease in workbench.team.leases(me)}
    rows = []
    for name in sorted({*decided, *adjudicated, *assigned, *held}, key=str.casefold):
        name_cell: TableCell = {"text": name}
        if assigned.get(name):
            name_cell |= {"href": address.link("queue", assignee=address.in_words([name]))}
        lease_cell: TableCell = {"text": "–"}
        if name in held:
            lease_cell = {
                "text": held[name].case_id,
                "below": [f"until {held[name].until[11:16]} UTC"],
            }
        stats = stats_by_name.get(name)
        rows.append(
            row(
                name_cell,
                _count_cell(decided.get(name, 0), stats and stats.seconds),
                *(stats.verdicts.get(verdict, 0) if stats else "–" for verdict in DECIDED),
                _upheld_cell(stats),
                _adjudication_cell(name, adjudicated.get(name, 0), stats),
                assigned.get(name, 0),
                lease_cell,
            )
        )
    if not rows:
        st.caption("No decisions yet. Reviewers are listed here after their first decision.")
        st.page_link("pages/queue.py", label="Open the queue", icon=":material/checklist:")
        return
    verdicts = [column(word.text, "figure") for word in DECIDED.values()]
    columns = [
        *(column("Reviewer"), column("Decisions", "figure"), *verdicts),
        *map(functools.partial(column, kind="figure"), ("Upheld", "Adjudications")),
        *(
            column("Assigned", "figure", hide="hide-medium"),
            column("Open case", hide="hide-medium"),
        ),
    ]
    linked_table(columns, rows, description="Reviewers", key="team-progress")
    hidden = (
        ""
        if sees_all
        else "Only leads see the verdicts, times and upheld decisions of other people. "
    )
    st.caption(
        f"{UPHELD} Times are those of decisions made on the pages."
        f" {hidden}{workbench.trust.counts_in_words(me)}"
    )
    _draw_pairs(pairs)
    st.page_link(
        "pages/trust.py", label="Trust: agreement in detail", query_params={"view": "people"}
    )


def _count_cell(count: int, seconds: float | None) -> TableCell:
    below = [f"median {duration(1000 * round(seconds))}"] if count and seconds is not None else []
    return {"text": f"{count:,}", "below": below}


def _adjudication_cell(name: str, count: int, stats: ReviewerStats | None) -> TableCell:
    """Return the number of a person's adjudications, with a link to them in the log."""
    cell = _count_cell(count, stats and stats.adjudication_seconds)
    if count:
        cell["href"] = address.link(
            "decisions", kind="adjudication", reviewer=address.in_words([name])
        )
    if stats and stats.escalations:
        # an escalation doesn't settle a case
        parts = f"{count - stats.escalations:,} settled, {stats.escalations:,} escalated"
        cell["below"] = [parts, *cell["below"]]
    return cell


def _upheld_cell(stats: ReviewerStats | None) -> TableCell:
    """Return how many verdicts of a reviewer were upheld, and how many of their corrections."""
    if stats is None or stats.agreed.value is None:
        return {"text": "–"}
    upheld = f"{round(stats.agreed.value * stats.agreed.n):,} of {stats.agreed.n:,}"
    below = (
        [f"{stats.whole:,} of {stats.with_answer:,} with their correction"]
        if stats.with_answer
        else []
    )
    return {"text": upheld, "below": below}


def _draw_pairs(pairs: list[Pair]) -> None:
    """Draw a table of the verdicts of two reviewers, with the pair that agrees least first."""
    if not pairs:
        return
    by_agreement = sorted(pairs, key=lambda pair: pair.same / max(1, pair.raw.n))
    names = [
        f"{pair.first} and {pair.second}: {pair.same:,} of {pair.raw.n:,} alike"
        for pair in by_agreement
    ]
    with st.container(width=760, gap="xsmall"):
        chosen = (
            st.selectbox("Verdicts of two reviewers", names, key="team-pair")
            if names[1:]
            else names[0]
        )
        pair, words = by_agreement[names.index(chosen)], [word.text for word in DECIDED.values()]
        # only verdicts that at least one of the two gave
        used = [
            index for index in range(len(words)) if any(index in both for both in pair.verdicts)
        ]
        columns = [
            column(""),
            *(column(f"{pair.second}: {words[index]}", "figure") for index in used),
        ]
        rows = [
            row(
                f"{pair.first}: {words[first]}",
                *(pair.verdicts.get((first, second)) for second in used),
            )
            for first in used
        ]
        linked_table(
            columns,
            rows,
            description=f"Verdicts of {pair.first} and {pair.second}",
            key="team-verdicts",
        )


def _count_differing(workbench: Workbench) -> int:
    return workbench.cases.find_for(
        actor(), CaseFilter(states=("needs_adjudication",), size=1)
    ).total


def pair_text(pair: Pair, noun: str) -> str:
    """Say how often two reviewers agree; ``noun`` names the kind of case."""
    total = pair.raw.n
    names = f"{escape_markdown(pair.first)} and {escape_markdown(pair.second)}"
    fully = (
        f", the same verdict and correction in {pair.same - len(pair.apart):,}"
        if pair.apart
        else ""
    )
    return (
        f"{names} gave the same verdict in {pair.same:,} of {count_noun(total, noun)}"
        f" ({pair.same / max(1, total):.0%}){fully}."
    )


def _draw_differing(workbench: Workbench) -> None:
    """Draw the cases whose reviewers disagree."""
    st.header("Adjudication", anchor=False)
    _draw_causes(workbench)
    page = workbench.cases.find_for(
        actor(), CaseFilter(states=("needs_adjudication",), size=MOST_LISTED)
    )
    if not page.total:
        st.caption(
            "No reviewers disagree on a case. Such cases are listed here once all their reviewers"
            " have decided."
        )
        return
    individual = {summary.id: decisions_on(workbench, summary.id) for summary in page.rows}
    # The first difference is the one that keeps the case from being settled. There is none if a
    # decision was redacted.
    first = {
        case: next(iter(differences(decisions)), "decision")
        for case, decisions in individual.items()
    }
    kinds = Counter(first.values())
    kinds_text = ", ".join(
        f"{kinds[kind]:,} {'differ' if kinds[kind] > 1 else 'differs'} in the {kind}"
        for kind in kinds
    )
    listed = (
        "" if page.total == len(page.rows) else f"Of {page.total:,}, the first {len(page.rows):,}: "
    )
    cases = count_noun(kinds.total(), "case has", "cases have")
    st.markdown(
        f"{listed}{cases} reviewers who disagree. {kinds_text}."
        f" Open a case to adjudicate it. {_permission_text(workbench)}"
    )
    rows, drafted = [], workbench.drafts.cases_with_drafts(actor(), first, adjudication_subject)
    for summary in page.rows:
        verdicts: TableCell = {"text": ", ".join(verdicts_by_reviewer(workbench, summary.id))}
        if first[summary.id] != "verdict":
            verdicts["below"] = [f"{first[summary.id].capitalize()} differs"]
        question = _case_question_cell(summary, "team")
        if summary.id in drafted:
            question["below"] = [f"{summary.id} · you have a draft"]
        rows.append(row(question, severity_cell(summary), verdicts, open=summary.id))
    columns = [column("Question", "main"), column("Severity", "pills"), column("Verdicts")]
    if opened := linked_table(
        columns, rows, description="Cases that need adjudication", key="differing"
    ):
        address.set_param("case", opened)
        st.rerun()


def _draw_escalated(workbench: Workbench) -> None:
    """Draw the escalated cases with their reasons, and a button to assign them."""
    page = workbench.cases.find_for(actor(), ESCALATED)
    if not page.total:
        return
    st.header("Escalated", anchor=False)
    waits = count_noun(page.total, "case is escalated and waits", "cases are escalated and wait")
    st.markdown(f"{waits} for more evidence or another reviewer. Open one, or assign it.")
    shows_names = workbench.trust.shows_names()
    rows, pages = [], {}
    for summary in page.rows:
        entry = workbench.reviews.current(summary.id)
        final = entry.decision if entry else None
        work = workbench.team.work(actor(), summary.id)
        # a case with one reviewer is settled on its own page, others by an adjudication
        pages[summary.id] = "review" if work.policy is None else "team"
        is_public = shows_names or (final is not None and final.kind == "adjudication")
        by: TableCell = {"text": final.reviewer if final and is_public else "–"}
        by["below"] = [final.reason or final.note or "No reason given"] if final else []
        assignees = ", ".join(work.assignees) or "nobody"
        rows.append(
            row(_case_question_cell(summary, pages[summary.id]), by, assignees, open=summary.id)
        )
    columns = [column("Question", "main"), column("Escalated by"), column("Assigned to")]
    if opened := linked_table(columns, rows, description="Escalated cases", key="escalated"):
        if pages.get(opened) == "review":
            address.open_case(opened)
        address.set_param("case", opened)
        st.rerun()
    if reviewer() is not None:
        st.button(
            "Assign escalated cases",
            key="give-escalated",
            icon=":material/assignment_ind:",
            on_click=_open_assignment,
            args=(list(pages),),
            **button_state("oversee"),
        )


def _case_question_cell(summary: CaseSummary, page: str) -> TableCell:
    href = address.link(page, case=summary.id)
    return {"text": summary.query, "href": href, "open": summary.id, "below": [summary.id]}


def _open_assignment(cases: list[str]) -> None:
    """Open the view that assigns cases, with these cases chosen."""
    st.session_state["give-out-cases"], st.session_state["team-view"] = cases, "Assign cases"
    address.set_param("view", "assign cases")


def _draw_assignment(workbench: Workbench) -> None:
    """Draw the view that assigns, tags or skips many cases at once."""
    team, counts = workbench.team, workbench.store.team.count_cases
    text = st.text_input(
        "Search in waiting cases", key="give-text", max_chars=address.LONGEST_QUERY
    )
    # escalated cases first, as they usually wait for a certain person
    pages = [
        workbench.cases.find_for(actor(), case_filter.model_copy(update={"text": text}))
        for case_filter in (ESCALATED, waiting_in(CaseFilter(order="oldest", size=MOST_LISTED)))
    ]
    total = sum(page.total for page in pages)
    if not total:
        st.caption(
            "No undecided cases match the search. Remove a word from it."
            if text
            else "Nothing to assign. Import or audit cases first."
        )
        return
    shows_names, titles = workbench.trust.shows_names(), {}
    for summary in (summary for page in pages for summary in page.rows):
        facts = ["", summary.severity, summary.id, summary.query]
        if summary.state == "escalated":
            by = team.work(actor(), summary.id).decided_by if shows_names else ()
            facts[0] = f"Escalated, decided by {_join_names(by)}" if by else "Escalated"
        titles[summary.id] = " · ".join(filter(None, facts))[:120]
    actions: dict[str, _Action] = {
        "assign": _Action(
            "Assign",
            "reviewers",
            team.reviewers(),
            lambda user, *_: team.give(user, plan.given),
            accepts_new=True,
        ),
        "unassign": _Action("Unassign", "reviewers", counts("assigned"), team.unassign),
        "tag": _Action("Tag", "tags", counts("tagged"), team.tag, accepts_new=True),
        "untag": _Action("Untag", "tags", counts("tagged"), team.untag),
        "skip": _Action("Skip", None, (), lambda user, cases, _: len(team.skip(user, cases))),
    }
    chosen_action = st.segmented_control(
        "Action",
        list(actions),
        format_func=lambda name: actions[name].label,
        default="assign",
        required=True,
    )
    action_name = chosen_action or "assign"
    action = actions[action_name]
    first = f", the first {len(titles):,} are listed" if total > len(titles) else ""
    label = f"Waiting cases ({total:,}{first})"
    # no st.form, so that the label of the button shows the effect of each choice
    chosen = st.multiselect(
        label, list(titles), format_func=titles.__getitem__, key="give-out-cases"
    )
    names: list[str] = []
    if action.names:
        hint = "Choose or type a name" if action.accepts_new else "Choose"
        options: dict[str, Any] = {"accept_new_options": action.accepts_new, "placeholder": hint}
        known = list(action.known)
        names = st.multiselect(
            action.names.capitalize(), known, key=f"give-{action_name}", **options
        )
    if action.names == "reviewers" and (loads := team.loads()):
        loads_text = ", ".join(f"{escape_markdown(name)} {load:,}" for name, load in loads.items())
        st.caption(f"Assigned and not settled: {loads_text}.")
    label, plan = f"{action.label} {count_noun(len(chosen), 'case')}", AssignmentPlan()
    if action_name == "assign" and chosen and names:
        ways = {
            "all": "All cases to each reviewer",
            "in turn": "Each case to one reviewer, in turn",
        }
        way = "all"
        if names[1:]:
            way = st.segmented_control(
                "Distribution",
                list(ways),
                format_func=ways.__getitem__,
                default=way,
                required=True,
            )
        plan = team.share_out(actor(), chosen, names, one_each=way == "in turn")
        label = (
            f"Assign {escape_markdown(_assignment_text(plan.given))}"
            if plan.given
            else "Nothing to assign"
        )
        for case_id, deciders in plan.decided.items():
            decided_by = _join_names(deciders) if shows_names else "some"
            st.caption(
                f"{escape_markdown(case_id)} isn't assigned to {escape_markdown(decided_by)}, who"
                " decided it already."
            )
        if plan.full:
            st.caption(
                "These cases have as many reviewers as the policy asks for:"
                f" {escape_markdown(', '.join(plan.full))}."
            )
        if not plan.given and not plan.decided:
            st.caption("Already assigned.")
    is_ready = bool(
        chosen and (plan.given if action_name == "assign" else names or not action.names)
    )
    sent = st.button(
        label, key="give-out", type="primary", **button_state("decide", disabled=not is_ready)
    )
    if sent and run_action(lambda: action.run(actor(), chosen, names)):
        text = (
            _counts_text(plan.given)
            if action_name == "assign"
            else f"Done for {count_noun(len(chosen), 'case')}"
        )
        st.session_state[_GIVEN] = (text, plan.given)
        st.rerun()  # to update the numbers of assigned cases above
    text, given = st.session_state.get(_GIVEN, ("", {}))
    if text:
        st.success(f"{escape_markdown(text)}. Each is an entry in the decision log.")
    undo = given and st.button(
        "Undo", key="give-back", icon=":material/undo:", help="Undo just these assignments"
    )
    if undo and run_action(lambda: team.give(actor(), given, back=True)):
        st.session_state[_GIVEN] = (f"Undone: {_counts_text(given, '−')}", {})
        st.rerun()
    if not given:  # a message stays as long as it can be undone
        st.session_state.pop(_GIVEN, None)
    sample = "Draw a sample of answers without issues for people to check"
    st.page_link("pages/trust.py", label=sample, query_params={"view": "guarantee"})


_GIVEN = "given-out"
"""The key of the session state for the last assignment: its message and the cases by reviewer."""


def _join_names(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def _counts_text(given: Mapping[str, Sequence[str]], sign: str = "+") -> str:
    return ", ".join(f"{name} {sign}{len(cases):,}" for name, cases in given.items())


def _assignment_text(given: Mapping[str, Sequence[str]]) -> str:
    """Return an assignment in words: "3 cases to Ada", "2 cases to each of 3: 6 assignments"."""
    sizes = {len(cases) for cases in given.values()}
    if len(given) == 1 or len(sizes) > 1:
        return ", ".join(
            f"{count_noun(len(cases), 'case')} to {name}" for name, cases in given.items()
        )
    size = sizes.pop()
    total = size * len(given)
    return f"{count_noun(size, 'case')} to each of {len(given)}: {total:,} assignments"


class _Action(NamedTuple):
    """An action on many cases at once.

    Attributes:
        label: The verb on the button.
        names: The kind of names that it needs, if any.
        known: The known names.
        run: Runs it, with the user, the cases and the names.
        accepts_new: Whether new names can be typed.

    """

    label: str
    names: Literal["reviewers", "tags"] | None
    known: Iterable[str]
    run: Callable[[Actor, list[str], list[str]], object]
    accepts_new: bool = False


def _draw_policy(workbench: Workbench) -> None:
    """Draw the choices of the policy, and its history."""
    policy_now = workbench.store.team.in_force(QueuePolicy)
    in_force: dict[str, Any] = {name: getattr(policy_now, name) for name in CHOICES} | {
        "share": round(100 * policy_now.share)
    }
    keys = {name: f"policy-{policy_now.version}-{name}" for name in CHOICES}
    for name, value in in_force.items():
        # setdefault, because assigning on every run would undo a choice that isn't set yet
        st.session_state.setdefault(keys[name], value)
    chosen = {name: st.session_state[key] for name, key in keys.items()}
    changed = {name: value for name, value in chosen.items() if value != in_force[name]}
    # Without that rule the number has no effect, so a change of it isn't one of the policy.
    if chosen["rule"] != "agree":
        changed.pop("agree", None)
    # A choice is remembered while other pages are open, so it's marked as not set yet: nobody
    # should take it for the policy in force.
    titles = {
        name: title + " :orange[(not set yet)]" * (name in changed)
        for name, title in CHOICES.items()
    }
    choices, history = st.columns([3, 2], gap="large")
    # no st.form, so that the effects of a choice show before it's set
    with choices:
        unset = (
            f":orange[{count_noun(len(changed), 'choice is', 'choices are')} not set yet.] "
            if changed
            else ""
        )
        st.caption(
            f"{unset}{_version_text(workbench, policy_now)} Cases with a decision keep their number"
            " of reviewers and their rule for the verdict. A change to when reviewers see the audit"
            f" takes effect immediately for all cases. {_permission_text(workbench)}"
        )
        costs = (
            "Each reviewer adds a decision to every shared case. Two are enough to measure"
            " agreement."
        )
        _draw_policy_number("reviewers", titles, keys, MOST_REVIEWERS, help=costs)
        with _policy_field("share"):
            st.slider(
                titles["share"],
                *(0, 100),
                key=keys["share"],
                format="%d %%",
                help=(
                    "The other cases are decided by one person each. A share of the cases is enough"
                    " to measure agreement."
                ),
                disabled=chosen["reviewers"] == 1,
            )
        asks_all = chosen["reviewers"] > 1 and chosen["agree"] == chosen["reviewers"]
        same_rule = (
            {"agree": (RULES["agree"][0], ALL_OF_THEM.format(chosen["agree"]))} if asks_all else {}
        )
        _draw_policy_options("rule", titles, RULES | same_rule, keys["rule"])
        # disabled rather than left out, so that the fields below don't move
        _draw_policy_number(
            "agree", titles, keys, MOST_REVIEWERS, disabled=chosen["rule"] != "agree"
        )
        _draw_policy_options("machine", titles, MACHINE, keys["machine"])
        _draw_policy_options("systems", titles, SYSTEMS, keys["systems"])
        lease_help = (
            "While it's reserved, nobody else can decide the case. If its reviewer is inactive for"
            " longer, others can."
        )
        _draw_policy_number("lease_minutes", titles, keys, 24 * 60, help=lease_help)
        if "share" in changed:
            # The slider shows percent, and the policy stores a share.
            changed["share"] /= 100
        policy = policy_now.model_dump(exclude={"version"}) | changed
        with st.container(horizontal=True, gap="small"):
            label = "Set this policy" if changed else "This policy is in force"
            sent = st.button(
                label,
                key="set-policy",
                type="primary",
                **button_state("oversee", disabled=not changed),
            )
            reset = {keys[name]: value for name, value in in_force.items()}
            st.button(
                "Discard",
                key="discard-policy",
                # in a callback, because a run can't change the value of a widget that it has drawn
                on_click=st.session_state.update,
                args=(reset,),
                disabled=not changed,
            )
        if warning := _hiding_text(workbench, policy_now.machine, chosen["machine"]):
            st.warning(warning)
        changes = ". ".join(_policy_changes(policy_now.model_dump(), policy))
        _put_in_force(
            workbench,
            QueuePolicy,
            lambda: QueuePolicy.model_validate(policy),
            sent=sent,
            changes=changes,
        )
    with history:
        _draw_policy_versions(workbench)


def _permission_text(workbench: Workbench) -> str:
    """Say who can set the policy and adjudicate."""
    if workbench.access.allows(ANONYMOUS, "oversee"):
        return (
            "Without sign-in, anyone who types a name can set the policy and adjudicate other"
            " people's decisions."
        )
    return "Leads can set the policy and adjudicate other people's decisions."


def _policy_field(name: str) -> DeltaGenerator:
    """Return the container of a field of the policy, framed if the address names the field."""
    return st.container(border=address.value("field") == name)


def _draw_policy_number(
    name: str, titles: Mapping[str, str], keys: Mapping[str, str], most: int, **options: Any
) -> None:
    """Draw a number of the policy, from 1 to ``most``."""
    with _policy_field(name):
        st.number_input(titles[name], 1, most, key=keys[name], **options)


def _draw_policy_options(
    name: str, titles: Mapping[str, str], options: Mapping[Choice, tuple[str, str]], key: str
) -> None:
    """Draw the options of a field of the policy, each with its costs and benefits."""
    with _policy_field(name):
        st.radio(
            titles[name],
            list(options),
            format_func=lambda option: options[option][0],
            captions=[caption for _, caption in options.values()],
            key=key,
        )


def _draw_policy_versions(workbench: Workbench) -> None:
    """Draw the history of the policy with the changes of each version, newest first."""
    st.markdown("**History**")
    before, lines = QueuePolicy().model_dump(), []
    for at, by, policy in workbench.store.team.history(QueuePolicy):
        after = policy.model_dump()
        changed = _policy_changes(before, after) or ["No changes"]
        lines.append(
            (f"Version {policy.version}, {escape_markdown(by)}, {moment(at)} UTC", changed)
        )
        before = after
    # the last versions, in reverse order
    for title, changed in lines[: -MOST_VERSIONS - 1 : -1]:
        st.caption(title)
        st.text("\n".join(changed))
    if len(lines) <= MOST_VERSIONS:
        st.caption(
            "Before that, the default applied: one reviewer per case, who sees the audit at once."
        )


def _policy_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return the changes between two policies, a line for each field."""
    return [
        f"{title}: {_policy_value_text(name, before[name])} →"
        f" {_policy_value_text(name, after[name])}"
        for name, title in CHOICES.items()
        if before[name] != after[name]
    ]


def _policy_value_text(name: str, value: Any) -> str:
    """Return the value of a field of the policy in words."""
    if name == "rule":
        return RULES[value][0]
    if name == "machine":
        return MACHINE[value][0]
    if name == "systems":
        return SYSTEMS[value][0]
    return f"{value:.0%}" if name == "share" else str(value)


def _version_text(workbench: Workbench, record: TeamRecord) -> str:
    """Say which version of a record is in force, who set it and when."""
    if not record.version:
        return "The default applies."
    at, by, _ = workbench.store.team.history(type(record))[-1]
    return f"Version {record.version}, set by {escape_markdown(by)} on {moment(at)} UTC."


def _hiding_text(workbench: Workbench, now: MachineShown, then: MachineShown) -> str:
    """Explain what a policy change hides; "" if it hides no more than the current policy."""
    if list(MACHINE).index(then) <= list(MACHINE).index(now):  # MACHINE is ordered by secrecy
        return ""
    states = workbench.cases.facets_for(actor()).states
    undecided = sum(
        states.get(state, 0) for state in ("needs_review", "needs_adjudication", "accepted")
    )
    until = "who hasn't decided them" if then == "after" else "until they're decided"
    return (
        f"This policy hides the marks and scores of {count_noun(undecided, 'undecided case')} from"
        f" everyone {until}. That includes you, other adjudicators and people with a draft of a"
        " decision. The Trust page won't name reviewers, and figures will count settled cases"
        " only. Nobody sees another reviewer's decision on a case before deciding it, as under"
        " every policy with several reviewers."
        " The Metrics page is unavailable while cases are hidden from you. You can show everything"
        " again by restoring the policy."
    )


def _put_in_force(
    workbench: Workbench, kind: type[T], record: Callable[[], T], *, sent: bool, changes: str = ""
) -> None:
    """Set a team record if its button was pressed, and confirm it with its changes."""
    done = f"team-set-{kind.__name__}"
    version = workbench.store.team.in_force(kind).version
    if sent and run_action(lambda: workbench.team.put_in_force(actor(), record())):
        st.session_state[done] = version, changes
        st.rerun()
    before, changes = st.session_state.pop(done, (None, ""))
    if before == version:
        st.info(f"Nothing has changed. Version {version} is still in force.")
    elif before is not None:
        st.success(f"Version {version} is now in force. {changes}")


def _draw_rubric(workbench: Workbench) -> None:
    rubric = workbench.store.team.in_force(Rubric)
    st.caption(
        f"{_version_text(workbench, rubric)} Each decision keeps its scores with the version of the"
        " rubric at the time."
    )
    _draw_proposals(workbench)
    written = "\n".join(map(score_line, rubric.scores))
    guidelines = _draw_policy_text(
        "Guidelines, shown with every case", rubric, rubric.guidelines, rows=6, hint=""
    )
    lines = _draw_policy_text("Scores", rubric, written, rows=4, hint=RUBRIC_HELP)
    unchanged = (guidelines.strip(), lines.strip()) == (rubric.guidelines, written)
    sent = st.button(
        "Set this rubric", key="set-rubric", **button_state("oversee", disabled=unchanged)
    )
    _put_in_force(
        workbench,
        Rubric,
        lambda: Rubric(guidelines=guidelines.strip(), scores=read_scores(lines)),
        sent=sent,
    )


def _draw_proposals(workbench: Workbench) -> None:
    """Draw the sentences that adjudicators propose, with the decisions that they would touch."""
    if message := st.session_state.pop("proposal-error", ""):
        st.error("Nothing was changed.", icon=":material/error:")
        st.text(message)
    proposals = workbench.proposals.list_open(actor())
    if not proposals:
        return
    st.markdown(f"**{count_noun(len(proposals), 'proposed sentence')}**")
    for proposal in proposals[:MOST_VERSIONS]:
        key, touched = proposal.entry_id, proposal.touched
        with st.container(border=True):
            sentence = st.text_area(
                f"Sentence from {escape_markdown(proposal.by)}, adjudicating"
                f" {escape_markdown(proposal.case_id[:100])}",
                proposal.sentence,
                max_chars=LONGEST_SENTENCE,
                key=f"proposal-{key}",
            )
            cases = count_noun(touched.total, "decided case")
            with st.expander(f"Affects {cases} with the same reason or label"):
                rows = [
                    row({"text": case, "href": address.link("review", case=case)})
                    for case in touched.ids
                ]
                if rows:
                    linked_table(
                        [column("Case", "main")],
                        rows,
                        description="Decisions the sentence would affect",
                        key=f"touched-{key}",
                    )
                if (more := touched.total - len(rows)) > 0:
                    st.caption(f"and {more:,} more")
            with st.container(horizontal=True):
                st.button(
                    "Add to the guidelines",
                    key=f"proposal-accept-{key}",
                    on_click=_settle_proposal,
                    args=(workbench.proposals.accept, key, sentence),
                    **button_state("oversee", disabled=not sentence.strip()),
                )
                st.button(
                    "Dismiss",
                    key=f"proposal-dismiss-{key}",
                    on_click=_settle_proposal,
                    args=(workbench.proposals.dismiss, key),
                    **button_state("oversee"),
                )


def _settle_proposal(action: Callable[..., object], *arguments: str) -> None:
    try:
        action(actor(), *arguments)
    except MasisError as error:
        st.session_state["proposal-error"] = str(error)


def _draw_causes(workbench: Workbench) -> None:
    """Say how often each cause was given for a disagreement."""
    counts = workbench.proposals.count_causes(actor())
    total = sum(counts.by_cause.values())
    if not total:
        return
    parts = [f"{CAUSES[code].text.lower()} {number:,}" for code, number in counts.by_cause.items()]
    without = f"; {counts.none:,} without a cause" if counts.none else ""
    adjudicated = count_noun(total + counts.none, "adjudicated case")
    st.caption(f"Causes of disagreement in {adjudicated}: {', '.join(parts)}{without}.")


def _draw_policy_text(label: str, record: TeamRecord, text: str, *, rows: int, hint: str) -> str:
    """Draw a text field of a team record, and return its text.

    A typing area sends its text while it's typed. A field in st.form would send it only with the
    form, too late to enable the button.
    """
    key, version = f"team-{type(record).__name__}-{label}", str(record.version)
    # Texts by version, so that text typed for an earlier version isn't shown for a new one.
    typed = st.session_state.setdefault(key, {})
    typing_area(
        label,
        key=f"{key}-field",
        text=typed.get(version, text),
        version=version,
        most=20_000,
        rows=rows,
        hint=hint,
        on_text=functools.partial(typed.__setitem__, version),
    )
    return str(typed.get(version, text))


LABEL_TYPES_HELP = "One type per line: name, or name | guidance."


def _draw_label_types(workbench: Workbench) -> None:
    label_types = workbench.store.team.in_force(LabelTypes)
    st.caption(
        f"{_version_text(workbench, label_types)} These are the types of issues that reviewers can"
        " report when they label words of an answer. Each decision keeps its labels with the"
        " version of this list at the time."
    )
    written = "\n".join(map(type_line, label_types.types))
    lines = _draw_policy_text("Types", label_types, written, rows=8, hint=LABEL_TYPES_HELP)
    unchanged = lines.strip() == written
    sent = st.button(
        "Set these label types",
        key="set-label-types",
        **button_state("oversee", disabled=unchanged),
    )
    _put_in_force(workbench, LabelTypes, lambda: LabelTypes(types=read_types(lines)), sent=sent)


def read_types(lines: str) -> tuple[LabelType, ...]:
    """Parse label types from lines in the format of ``LABEL_TYPES_HELP``.

    Raises:
        ValueError: A line isn't a label type, or there is none. The message quotes the line.

    """
    types = []
    for line in filter(str.strip, lines.splitlines()):
        name, _, guidance = (part.strip() for part in line.partition("|"))
        try:
            types.append(LabelType(name=name, guidance=guidance))
        except ValidationError as error:
            raise ValueError(
                f"“{line.strip()[:80]}” isn't a label type. Names can have 1 to 60 characters, and"
                f" guidance up to 500. {LABEL_TYPES_HELP}"
            ) from error
    if not types:
        raise ValueError(f"There is no label type. Add at least one. {LABEL_TYPES_HELP}")
    return tuple(types)


def type_line(label_type: LabelType) -> str:
    """Return a label type as a line that ``read_types`` can parse."""
    return label_type.name + (f" | {label_type.guidance}" if label_type.guidance else "")
