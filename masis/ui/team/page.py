"""The page of the team: progress, what needs adjudication, giving out cases, policy, rubric and
label types.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

import streamlit as st
from pydantic import ValidationError
from streamlit.delta_generator import DeltaGenerator

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
from masis.schema.wording import count_noun
from masis.services import ANONYMOUS, Workbench
from masis.services.cases import waiting_in
from masis.services.drafts import adjudication_subject
from masis.services.records import CaseFilter, CaseSummary
from masis.services.team import AssignmentPlan
from masis.services.trust.service import ReviewerStats
from masis.services.trust.summary import UPHELD, agreement_text
from masis.trust.agreement import Pair
from masis.ui.components.linked_table import TableCell, column, linked_table, row
from masis.ui.queue.case_list import severity_cell, who_decided
from masis.ui.queue.overview import standing_counts
from masis.ui.shell import address
from masis.ui.shell.inputs import typing_area
from masis.ui.shell.permissions import button_state, run_action
from masis.ui.shell.reviewer import actor, reviewer
from masis.ui.team.adjudication import OPENED, decisions_on, differences, show_adjudication
from masis.ui.team.taking import ask_name
from masis.views.markdown import escape_markdown
from masis.views.numbers import duration, moment
from masis.views.words import DECIDED, WAITS_FOR_YOU

T = TypeVar("T", bound=TeamRecord)
Choice = TypeVar("Choice", bound=str)

MOST_LISTED = 100
PAIRS_SAID = 3
"""Pairs of reviewers, those with most cases in common, whose agreement the page says in words."""

RULES: dict[PolicyRule, tuple[str, str]] = {
    "adjudicated": (
        "What all agree on; else an adjudication",
        (
            "To agree is to give the same verdict on the same answer or correction. Costs"
            " somebody's time wherever two differ; who adjudicates gives a reason unless they"
            " approve as a reviewer did."
        ),
    ),
    "agree": (
        "What enough of them agree on; else an adjudication",
        (
            "Costs fewer adjudications: so many with the same verdict and answer settle the case,"
            " and who differs from them is outvoted."
        ),
    ),
    "first": (
        "The first decision; the others measure agreement",
        (
            "Costs no adjudication. One person settles each case; the others show how far that can"
            " be relied on."
        ),
    ),
}
ALL_OF_THEM = "The same as the rule above: {0} of {0} reviewers are all of them."
MACHINE: dict[MachineShown, tuple[str, str]] = {
    "first": (
        "At once",
        (
            "Fastest. Who sees a verdict agrees with it more often: it shows little of how right"
            " it is."
        ),
    ),
    "after": (
        "After their own decision",
        (
            "Slower: they read without marks. Shows how far the audit is right, which is what Trust"
            " needs."
        ),
    ),
    "never": (
        "Not before the case is decided",
        (
            "Slowest: they can't correct themselves by the audit either. Shows the same, and their"
            " agreement unaided."
        ),
    ),
}
"""What a policy can be, each with what it costs and shows."""
CHOICES: dict[str, str] = {
    "reviewers": "Reviewers a case",
    "share": "Share of the cases that several reviewers decide",
    "rule": "Which verdict stands",
    "agree": "How many have to agree, where enough do",
    "machine": "When a reviewer sees what the machine found",
    "lease_minutes": "Minutes that an opened case stays with its reviewer",
    "seed": "Number that the shared cases are drawn by",
}
"""What a policy says, by the name of its field; the address marks one as ``field``."""
MOST_VERSIONS = 20
ESCALATED = CaseFilter(states=("escalated",), order="oldest", size=MOST_LISTED)


def show_team(workbench: Workbench) -> None:
    """Draw the page, with the view that the address names; a case in the address is shown for
    adjudication.
    """
    if case_id := address.value("case"):
        show_adjudication(workbench, case_id)
        return
    st.session_state.pop(OPENED, None)
    st.title("Team", anchor=False)
    ask_name(workbench)
    sections = {"Progress": _progress}
    if reviewer() is None:
        st.caption("Type your name to give out cases and to change policy and rubric.")
    else:
        sections |= {
            "Give out cases": _give_out,
            "Policy": _policy,
            "Rubric": _rubric,
            "Label types": _label_types,
        }
    asked = next(
        (each for each in sections if each.casefold() == address.value("view")), "Progress"
    )
    tabs = st.tabs(list(sections), default=asked, key="team-view", on_change=_keep_view)
    for tab, draw in zip(tabs, sections.values(), strict=True):
        with tab:
            draw(workbench)


def _keep_view() -> None:
    chosen = st.session_state["team-view"].casefold()
    address.set_param("view", "" if chosen == "progress" else chosen)
    address.set_param("field", "")


def _progress(workbench: Workbench) -> None:
    """Draw where all cases stand, who has decided how many and how far they agree, what differs,
    what is escalated.
    """
    me = actor()
    facets = workbench.cases.facets_for(me)
    standing_counts(facets.standings, facets.states, lesser=facets.lesser)
    count, mine = (
        workbench.team.count_open(me, CaseFilter()),
        workbench.team.adjudications(me, size=1),
    )
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        # no link: one that leads to the page it stands on leaves the address as it was
        if mine.total:
            st.button(
                f"Adjudicate {count_noun(mine.total, 'case')}",
                icon=":material/balance:",
                type="primary",
                on_click=address.set_param,
                args=("case", mine.rows[0].id),
                help=WAITS_FOR_YOU.meaning,
            )
        label = f"Review {count_noun(count, 'case')} that you can decide now"
        pressed = count and st.button(label, icon=":material/rate_review:", key="team-review")
        # which one is looked for once asked
        if pressed and (first := workbench.team.next_open(me, CaseFilter())):
            st.switch_page("pages/review.py", query_params={"case": first})
    _draw_people(workbench)
    _draw_differing(workbench)
    _draw_escalated(workbench)


def _draw_people(workbench: Workbench) -> None:
    """Draw how far reviewers agree, and of each how many cases they decided, how fast, and how
    often that stood.
    """
    me = actor()
    st.header("Reviewers", anchor=False)
    every, pairs = workbench.access.allows(me, "oversee"), list[Pair]()
    # who may read everybody's figures below reads the same names above them
    if (
        workbench.access.allows(me, "read")
        and (found := workbench.trust.people(me, names=every)).agreement.units
    ):
        what = "settled case" if workbench.cases.hides_machine_from(me) else "case"
        pairs = found.pairs
        agree = [pair_agrees(pair, what) for pair in pairs[:PAIRS_SAID]]
        st.markdown("  \n".join([*agree, f"{agreement_text(found.agreement.alpha).capitalize()}."]))
    adjudicated = workbench.trust.decisions_by(me, "adjudication")
    decided = workbench.trust.decisions_by(me)
    assigned = workbench.store.team.count_cases("assigned", undecided=True)
    work = {own.reviewer: own for own in workbench.trust.reviewers(me, others=every)}
    held = {lease.reviewer: lease for lease in workbench.team.leases(me)}
    rows = []
    for name in sorted({*decided, *adjudicated, *assigned, *held}, key=str.casefold):
        who: TableCell = {"text": name}
        if assigned.get(name):
            who |= {"href": address.link("queue", assignee=address.in_words([name]))}
        at_work: TableCell = {"text": "–"}
        if name in held:
            at_work = {
                "text": held[name].case_id,
                "below": [f"until {held[name].until[11:16]} UTC"],
            }
        own = work.get(name)
        rows.append(
            row(
                who,
                _with_time(decided.get(name, 0), own and own.seconds),
                *(own.verdicts.get(verdict, 0) if own else "–" for verdict in DECIDED),
                _upheld(own),
                _adjudication_cell(name, adjudicated.get(name, 0), own),
                assigned.get(name, 0),
                at_work,
            )
        )
    if not rows:
        st.caption("Nobody has decided a case yet.")
        st.page_link("pages/queue.py", label="Queue: cases to decide", icon=":material/checklist:")
        return
    verdicts = [column(word.text, "figure") for word in DECIDED.values()]
    columns = [
        *(column("Reviewer"), column("Decisions", "figure"), *verdicts),
        *map(functools.partial(column, kind="figure"), ("Upheld", "Adjudications")),
        *(
            column("Assigned", "figure", hide="hide-medium"),
            column("At work on", hide="hide-medium"),
        ),
    ]
    linked_table(columns, rows, description="Reviewers", key="team-progress")
    hidden = "" if every else "Of others, only leads see verdicts, times and what was upheld. "
    st.caption(
        f"{UPHELD} Times: of decisions on the pages. {hidden}{workbench.trust.counts_in_words(me)}"
    )
    _draw_pairs(pairs)
    st.page_link(
        "pages/trust.py", label="Trust: agreement in detail", query_params={"view": "people"}
    )


def _with_time(count: int, seconds: float | None) -> TableCell:
    below = [f"median {duration(1000 * round(seconds))}"] if count and seconds is not None else []
    return {"text": f"{count:,}", "below": below}


def _adjudication_cell(name: str, count: int, own: ReviewerStats | None) -> TableCell:
    """Return how many cases a person adjudicated, with the way to them: an escalation
    settles none.
    """
    cell = _with_time(count, own and own.adjudication_seconds)
    if count:
        cell["href"] = address.link(
            "decisions", kind="adjudication", reviewer=address.in_words([name])
        )
    if own and own.escalations:
        parts = f"{count - own.escalations:,} settled, {own.escalations:,} escalated"
        cell["below"] = [parts, *cell["below"]]
    return cell


def _upheld(own: ReviewerStats | None) -> TableCell:
    """Return how many decisions of a reviewer stand, by verdict, and below with their correction or
    answer.
    """
    if own is None or own.agreed.value is None:
        return {"text": "–"}
    stood = f"{round(own.agreed.value * own.agreed.n):,} of {own.agreed.n:,}"
    below = (
        [f"{own.whole:,} of {own.with_answer:,} with their correction"] if own.with_answer else []
    )
    return {"text": stood, "below": below}


def _draw_pairs(pairs: list[Pair]) -> None:
    """Draw how often two reviewers gave which verdicts on the same case, first of those who agree
    least.
    """
    if not pairs:
        return
    least = sorted(pairs, key=lambda pair: pair.same / max(1, pair.raw.n))
    names = [
        f"{each.first} and {each.second}: {each.same:,} of {each.raw.n:,} alike" for each in least
    ]
    with st.container(width=760, gap="xsmall"):
        chosen = (
            st.selectbox("Verdicts of two reviewers", names, key="team-pair")
            if names[1:]
            else names[0]
        )
        pair, words = least[names.index(chosen)], [word.text for word in DECIDED.values()]
        given = [
            number for number in range(len(words)) if any(number in both for both in pair.verdicts)
        ]
        columns = [
            column(""),
            *(column(f"{pair.second}: {words[number]}", "figure") for number in given),
        ]
        rows = [
            row(
                f"{pair.first}: {words[one]}", *(pair.verdicts.get((one, other)) for other in given)
            )
            for one in given
        ]
        linked_table(
            columns,
            rows,
            description=f"Verdicts of {pair.first} and {pair.second}",
            key="team-verdicts",
        )


def pair_agrees(pair: Pair, case: str) -> str:
    """Say in plain words how far two reviewers agree, and on what kind of case."""
    of, who = pair.raw.n, f"{escape_markdown(pair.first)} and {escape_markdown(pair.second)}"
    fully = (
        f", the same verdict and correction in {pair.same - len(pair.apart):,}"
        if pair.apart
        else ""
    )
    return (
        f"{who} gave the same verdict in {pair.same:,} of {count_noun(of, case)}"
        f" ({pair.same / max(1, of):.0%}){fully}."
    )


def _draw_differing(workbench: Workbench) -> None:
    """Draw the cases whose reviewers differ."""
    st.header("Adjudication", anchor=False)
    page = workbench.cases.find_for(
        actor(), CaseFilter(states=("needs_adjudication",), size=MOST_LISTED)
    )
    if not page.total:
        st.caption(
            "No case has reviewers who differ. Such cases are listed here once all their decisions"
            " are in."
        )
        return
    individual = {summary.id: decisions_on(workbench, summary.id) for summary in page.rows}
    # what comes first keeps them from settling the case; of a redacted decision nobody knows any
    # more
    first = {
        case: next(iter(differences(decisions)), "decision")
        for case, decisions in individual.items()
    }
    kinds = Counter(first.values())
    which = ", ".join(
        f"{kinds[kind]:,} {'differ' if kinds[kind] > 1 else 'differs'} in the {kind}"
        for kind in kinds
    )
    listed = (
        "" if page.total == len(page.rows) else f"Of {page.total:,}, the first {len(page.rows):,}: "
    )
    st.markdown(
        f"{listed}{count_noun(kinds.total(), 'case has', 'cases have')} reviewers who differ. {which}."
        f" Open one to decide it. {_who_may(workbench)}"
    )
    rows, begun = [], workbench.drafts.with_drafts(actor(), first, adjudication_subject)
    for summary in page.rows:
        verdicts: TableCell = {"text": ", ".join(who_decided(workbench, summary.id))}
        if first[summary.id] != "verdict":
            verdicts["below"] = [f"{first[summary.id].capitalize()} differs"]
        question = _case_question_cell(summary, "team")
        if summary.id in begun:
            question["below"] = [f"{summary.id} · begun by you"]
        rows.append(row(question, severity_cell(summary), verdicts, open=summary.id))
    columns = [column("Question", "main"), column("Severity", "pills"), column("Verdicts")]
    if opened := linked_table(
        columns, rows, description="Cases that need adjudication", key="differing"
    ):
        address.set_param("case", opened)
        st.rerun()


def _draw_escalated(workbench: Workbench) -> None:
    """Draw the cases that somebody escalated, who and why, and the way to give them to others;
    nothing of none.
    """
    page = workbench.cases.find_for(actor(), ESCALATED)
    if not page.total:
        return
    st.header("Escalated", anchor=False)
    waits = count_noun(page.total, "case is escalated and waits", "cases are escalated and wait")
    st.markdown(f"{waits} for more evidence or another reviewer. Open one, or give it to somebody.")
    named = workbench.trust.shows_names()
    rows, leads = [], {}
    for summary in page.rows:
        entry = workbench.reviews.current(summary.id)
        final = entry.decision if entry else None
        work = workbench.team.work(actor(), summary.id)
        # decided by one, whoever decides it next settles it
        leads[summary.id] = "review" if work.policy is None else "team"
        by: TableCell = {"text": final.reviewer if final and named else "–"}
        by["below"] = [final.reason or final.note or "No reason given"] if final else []
        given_to = ", ".join(work.assignees) or "nobody"
        rows.append(
            row(_case_question_cell(summary, leads[summary.id]), by, given_to, open=summary.id)
        )
    columns = [column("Question", "main"), column("Escalated by"), column("Given to")]
    if opened := linked_table(columns, rows, description="Escalated cases", key="escalated"):
        if leads.get(opened) == "review":
            address.open_case(opened)
        address.set_param("case", opened)
        st.rerun()
    if reviewer() is not None:
        st.button(
            "Give escalated cases to somebody",
            key="give-escalated",
            icon=":material/assignment_ind:",
            on_click=_choose_to_give,
            args=(list(leads),),
            **button_state("oversee"),
        )


def _case_question_cell(summary: CaseSummary, page: str) -> TableCell:
    href = address.link(page, case=summary.id)
    return {"text": summary.query, "href": href, "open": summary.id, "below": [summary.id]}


def _choose_to_give(cases: list[str]) -> None:
    """Open the view that gives cases out with these chosen."""
    st.session_state["give-out-cases"], st.session_state["team-view"] = cases, "Give out cases"
    address.set_param("view", "give out cases")


def _give_out(workbench: Workbench) -> None:
    team, counts = workbench.team, workbench.store.team.count_cases
    text = st.text_input(
        "Cases that hold these words", key="give-text", max_chars=address.LONGEST_QUERY
    )
    # escalated ones first: they wait for somebody in particular
    pages = [
        workbench.cases.find_for(actor(), case_filter.model_copy(update={"text": text}))
        for case_filter in (ESCALATED, waiting_in(CaseFilter(order="oldest", size=MOST_LISTED)))
    ]
    total = sum(page.total for page in pages)
    if not total:
        st.caption(
            "No case that waits holds these words."
            if text
            else "No case waits: there is none to give out."
        )
        return
    named, titles = workbench.trust.shows_names(), {}
    for summary in (summary for page in pages for summary in page.rows):
        facts = ["", summary.severity, summary.id, summary.query]
        if summary.state == "escalated":
            by = team.work(actor(), summary.id).decided_by if named else ()
            facts[0] = f"Escalated, decided by {_and(by)}" if by else "Escalated"
        titles[summary.id] = " · ".join(filter(None, facts))[:120]
    actions: dict[str, _Action] = {
        "assign": _Action(
            "Assign",
            "reviewers",
            team.reviewers(),
            lambda who, *_: team.give(who, shares.given),
            new=True,
        ),
        "unassign": _Action("Unassign", "reviewers", counts("assigned"), team.unassign),
        "tag": _Action("Tag", "tags", counts("tagged"), team.tag, new=True),
        "untag": _Action("Untag", "tags", counts("tagged"), team.untag),
        "skip": _Action("Skip", None, (), lambda who, cases, _: team.skip(who, cases)),
    }
    does = st.segmented_control(
        "Do",
        list(actions),
        format_func=lambda name: actions[name].label,
        default="assign",
        required=True,
    )
    does = does or "assign"
    action = actions[does]
    first = f", the first {len(titles):,} are listed" if total > len(titles) else ""
    label = f"Cases that wait ({total:,}{first})"
    # no form: what would be done shows before it is
    chosen = st.multiselect(
        label, list(titles), format_func=titles.__getitem__, key="give-out-cases"
    )
    names: list[str] = []
    if action.names:
        hint = "Choose or type a name" if action.new else "Choose"
        options: dict[str, Any] = {"accept_new_options": action.new, "placeholder": hint}
        known = list(action.known)
        names = st.multiselect(action.names.capitalize(), known, key=f"give-{does}", **options)
    if action.names == "reviewers" and (loads := team.loads()):
        each = ", ".join(f"{escape_markdown(name)} {load:,}" for name, load in loads.items())
        st.caption(f"Assigned and not settled: {each}.")
    label, shares = f"{action.label} {count_noun(len(chosen), 'case')}", AssignmentPlan()
    if does == "assign" and chosen and names:
        ways = {"all": "All of them to each", "in turn": "Each to one of them, in turn"}
        way = "all"
        if names[1:]:
            way = st.segmented_control(
                "Who gets which",
                list(ways),
                format_func=ways.__getitem__,
                default=way,
                required=True,
            )
        shares = team.share_out(actor(), chosen, names, one_each=way == "in turn")
        label = (
            f"Assign {escape_markdown(_assignment_text(shares.given))}"
            if shares.given
            else "Nothing to assign"
        )
        for case_id, who in shares.decided.items():
            whom = _and(who) if named else "some"
            st.caption(
                f"{escape_markdown(case_id)} is not given to {escape_markdown(whom)}, who decided it already."
            )
        if shares.full:
            st.caption(
                "Given to as many reviewers already as the policy asks for:"
                f" {escape_markdown(', '.join(shares.full))}."
            )
        if not shares.given and not shares.decided:
            st.caption("They have been given these cases already.")
    ready = bool(chosen and (shares.given if does == "assign" else names or not action.names))
    sent = st.button(
        label, key="give-out", type="primary", **button_state("decide", disabled=not ready)
    )
    if sent and run_action(lambda: action.do(actor(), chosen, names)):
        words = (
            _plus(shares.given)
            if does == "assign"
            else f"Done for {count_noun(len(chosen), 'case')}"
        )
        st.session_state[_GIVEN] = (words, shares.given)
        st.rerun()  # what each has been given is another figure now
    words, given = st.session_state.get(_GIVEN, ("", {}))
    if words:
        st.success(f"{escape_markdown(words)}. Each is an entry of the decision log.")
    undo = given and st.button(
        "Undo", key="give-back", icon=":material/undo:", help="Takes just these back"
    )
    if undo and run_action(lambda: team.give(actor(), given, back=True)):
        st.session_state[_GIVEN] = (f"Undone: {_plus(given, '−')}", {})
        st.rerun()
    if not given:  # what can be undone stays
        st.session_state.pop(_GIVEN, None)
    sample = "Trust: draw a sample of the answers in which nothing was found, for people to check"
    st.page_link("pages/trust.py", label=sample, query_params={"view": "guarantee"})


_GIVEN = "given-out"
"""What was given out last, in words and by reviewer, in the session state."""


def _and(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def _plus(given: Mapping[str, Sequence[str]], sign: str = "+") -> str:
    return ", ".join(f"{name} {sign}{len(cases):,}" for name, cases in given.items())


def _assignment_text(given: Mapping[str, Sequence[str]]) -> str:
    """Say what each of several reviewers is given, and how many assignments that is."""
    sizes = {len(cases) for cases in given.values()}
    if len(given) == 1 or len(sizes) > 1:
        return ", ".join(
            f"{count_noun(len(cases), 'case')} to {name}" for name, cases in given.items()
        )
    return (
        f"{count_noun(size := sizes.pop(), 'case')} to each of {len(given)}: {size * len(given):,}"
        " assignments"
    )


class _Action(NamedTuple):
    """What can be done to many cases at once: whose names it needs, those known, whether it takes
    new ones.
    """

    label: str
    names: Literal["reviewers", "tags"] | None
    known: Iterable[str]
    do: Callable[[Actor, list[str], list[str]], object]
    new: bool = False


def _policy(workbench: Workbench) -> None:
    """Draw what the policy can be, what each choice costs and shows, and who set which when."""
    now = workbench.store.team.in_force(QueuePolicy)
    stands: dict[str, Any] = {name: getattr(now, name) for name in CHOICES} | {
        "share": round(100 * now.share)
    }
    keys = {name: f"policy-{now.version}-{name}" for name in CHOICES}
    for name, value in stands.items():
        st.session_state.setdefault(keys[name], value)
    chosen = {name: st.session_state[key] for name, key in keys.items()}
    changed = {name: value for name, value in chosen.items() if value != stands[name]}
    if chosen["rule"] != "agree":
        changed.pop("agree", None)
    # a choice outlives a look at another page: what is chosen and what is in force must not be
    # taken for each other
    titles = {
        name: title + " :orange[(not set yet)]" * (name in changed)
        for name, title in CHOICES.items()
    }
    choices, history = st.columns([3, 2], gap="large")
    # no form: what a choice asks for, and what it would change, show before it is set
    with choices:
        unset = (
            f":orange[{count_noun(len(changed), 'choice is', 'choices are')} not set yet.] "
            if changed
            else ""
        )
        st.caption(
            f"{unset}{_version_text(workbench, now)} A case that has a decision keeps how many decide it"
            " and which verdict stands. What reviewers see of the machine changes at once, on"
            f" every case. {_who_may(workbench)}"
        )
        costs = "Each costs one more decision on every shared case. Two show how far people agree."
        _draw_policy_number("reviewers", titles, keys, MOST_REVIEWERS, help=costs)
        with _policy_field("share"):
            st.slider(
                titles["share"],
                *(0, 100),
                key=keys["share"],
                format="%d %%",
                help=(
                    "The rest is decided by one person each. A part is enough to measure agreement,"
                    " at less cost."
                ),
                disabled=chosen["reviewers"] == 1,
            )
        everybody = chosen["reviewers"] > 1 and chosen["agree"] == chosen["reviewers"]
        enough = (
            {"agree": (RULES["agree"][0], ALL_OF_THEM.format(chosen["agree"]))} if everybody else {}
        )
        _radio("rule", titles, RULES | enough, keys["rule"])
        # always there: what lies below doesn't move
        _draw_policy_number(
            "agree", titles, keys, MOST_REVIEWERS, disabled=chosen["rule"] != "agree"
        )
        _radio("machine", titles, MACHINE, keys["machine"])
        away = (
            "Nobody else can decide it meanwhile. Once its reviewer has been away for longer,"
            " others can."
        )
        _draw_policy_number("lease_minutes", titles, keys, 24 * 60, help=away)
        if "share" in changed:
            changed["share"] /= 100
        policy = now.model_dump(exclude={"version"}) | changed
        with st.container(horizontal=True, gap="small"):
            label = "Set this policy" if changed else "This policy is in force"
            sent = st.button(
                label,
                key="set-policy",
                type="primary",
                **button_state("oversee", disabled=not changed),
            )
            back = {keys[name]: value for name, value in stands.items()}
            st.button(
                "Discard",
                key="discard-policy",
                on_click=st.session_state.update,
                args=(back,),
                disabled=not changed,
            )
        if effect := _hides(workbench, now.machine, chosen["machine"]):
            st.warning(effect)
        what = ". ".join(_policy_changes(now.model_dump(), policy))
        _put_in_force(
            workbench, QueuePolicy, lambda: QueuePolicy.model_validate(policy), sent=sent, what=what
        )
    with history:
        _draw_policy_versions(workbench)


def _who_may(workbench: Workbench) -> str:
    """Say who sets the policy and adjudicates."""
    if workbench.access.allows(ANONYMOUS, "oversee"):
        return (
            "Without a sign-in, anybody who types a name may set the policy and adjudicate what"
            " others decided."
        )
    return "Leads set the policy and adjudicate what others decided."


def _policy_field(name: str) -> DeltaGenerator:
    """Return the place of a field of the policy, framed where the address asks for it."""
    return st.container(border=address.value("field") == name)


def _draw_policy_number(
    name: str, titles: Mapping[str, str], keys: Mapping[str, str], most: int, **options: Any
) -> None:
    """Draw a number of the policy, from 1 to ``most``."""
    with _policy_field(name):
        st.number_input(titles[name], 1, most, key=keys[name], **options)


def _radio(
    name: str, titles: Mapping[str, str], options: Mapping[Choice, tuple[str, str]], key: str
) -> None:
    """Draw the options of a field of the policy, each with what it costs and shows."""
    with _policy_field(name):
        st.radio(
            titles[name],
            list(options),
            format_func=lambda each: options[each][0],
            captions=[costs for _, costs in options.values()],
            key=key,
        )


def _draw_policy_versions(workbench: Workbench) -> None:
    """Draw who set which policy when, the newest first, each by what it changed."""
    st.markdown("**Who set what**")
    before, lines = QueuePolicy().model_dump(), []
    for at, by, policy in workbench.store.team.history(QueuePolicy):
        after = policy.model_dump()
        changed = _policy_changes(before, after) or ["As the one before"]
        lines.append(
            (f"Version {policy.version}, {escape_markdown(by)}, {moment(at)} UTC", changed)
        )
        before = after
    for title, changed in lines[: -MOST_VERSIONS - 1 : -1]:
        st.caption(title)
        st.text("\n".join(changed))
    if len(lines) <= MOST_VERSIONS:
        st.caption(
            "Before: the default, one reviewer a case, who sees at once what the machine found."
        )


def _policy_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Say what one policy changes in another."""
    differ = {name: title for name, title in CHOICES.items() if before[name] != after[name]}
    return [
        f"{title}: {_policy_value_text(name, before[name])} → {_policy_value_text(name, after[name])}"
        for name, title in differ.items()
    ]


def _policy_value_text(name: str, value: Any) -> str:
    """Return the value of a policy's field as the page words it."""
    if name == "rule":
        return RULES[value][0]
    if name == "machine":
        return MACHINE[value][0]
    return f"{value:.0%}" if name == "share" else str(value)


def _version_text(workbench: Workbench, now: TeamRecord) -> str:
    """Say which version of a record is in force, who set it and when."""
    if not now.version:
        return "The default: nobody has set one."
    at, by, _ = workbench.store.team.history(type(now))[-1]
    return f"Version {now.version}, set by {escape_markdown(by)} on {moment(at)} UTC."


def _hides(workbench: Workbench, now: MachineShown, then: MachineShown) -> str:
    """Say what setting another moment to see the machine hides from everybody; "" where it hides no
    more than now.
    """
    if list(MACHINE).index(then) <= list(MACHINE).index(now):
        return ""
    states = workbench.cases.facets_for(actor()).states
    undecided = sum(
        states.get(state, 0) for state in ("needs_review", "needs_adjudication", "accepted")
    )
    until = "who has not decided them" if then == "after" else "until they are decided"
    return (
        f"Once set, marks and scores of {count_noun(undecided, 'undecided case')} are hidden from"
        f" everybody {until}, from you and other adjudicators too, also where decisions were begun."
        " Pages name no reviewers and count decisions on settled cases only; Metrics is closed"
        " while cases are hidden from you. Setting it back shows all again."
    )


def _put_in_force(
    workbench: Workbench, kind: type[T], record: Callable[[], T], *, sent: bool, what: str = ""
) -> None:
    """Set a record of the team where its button was pressed, and say so once it is in force, with
    what it changes.
    """
    done = f"team-set-{kind.__name__}"
    version = workbench.store.team.in_force(kind).version
    if sent and run_action(lambda: workbench.team.put_in_force(actor(), record())):
        st.session_state[done] = version, what
        st.rerun()
    before, what = st.session_state.pop(done, (None, ""))
    if before == version:
        st.info(f"Nothing has changed: version {version} stays in force.")
    elif before is not None:
        st.success(f"Done: version {version} is in force from now on. {what}")


RUBRIC_HELP = "One score a line: name: 1-5, or name: word, word. Guidance may follow after a |."


def _rubric(workbench: Workbench) -> None:
    now = workbench.store.team.in_force(Rubric)
    st.caption(
        f"{_version_text(workbench, now)} Decisions keep their scores with the version they were given"
        " under."
    )
    written = "\n".join(map(score_line, now.scores))
    guidelines = _draw_policy_text(
        "Guidelines, shown beside every case", now, now.guidelines, rows=6, hint=""
    )
    lines = _draw_policy_text("Scores", now, written, rows=4, hint=RUBRIC_HELP)
    unchanged = (guidelines.strip(), lines.strip()) == (now.guidelines, written)
    sent = st.button(
        "Set this rubric", key="set-rubric", **button_state("oversee", disabled=unchanged)
    )
    _put_in_force(
        workbench,
        Rubric,
        lambda: Rubric(guidelines=guidelines.strip(), scores=read_scores(lines)),
        sent=sent,
    )


def _draw_policy_text(label: str, now: TeamRecord, text: str, *, rows: int, hint: str) -> str:
    """Draw a field of the record in force, and return what it holds: a form would say so only once
    it is sent.
    """
    key, version = f"team-{type(now).__name__}-{label}", str(now.version)
    typed = st.session_state.setdefault(key, {})
    take = functools.partial(typed.__setitem__, version)
    given = typed.get(version, text)
    typing_area(
        label,
        key=f"{key}-field",
        text=given,
        version=version,
        most=20_000,
        rows=rows,
        hint=hint,
        on_text=take,
    )
    return str(typed.get(version, text))


def read_scores(lines: str) -> tuple[RubricScore, ...]:
    """Return the scores that are written one a line (``RUBRIC_HELP``). Raises ValueError naming the
    line.
    """
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
            content["categories"] = tuple(
                word.strip() for word in values.split(",") if word.strip()
            )
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
        f"{_version_text(workbench, now)} The types of issues that reviewers report by labelling words"
        " of an answer. Decisions keep theirs with the version they were set under."
    )
    written = "\n".join(map(type_line, now.types))
    lines = _draw_policy_text("Types", now, written, rows=8, hint=LABEL_TYPES_HELP)
    unchanged = lines.strip() == written
    sent = st.button(
        "Set these label types",
        key="set-label-types",
        **button_state("oversee", disabled=unchanged),
    )
    _put_in_force(workbench, LabelTypes, lambda: LabelTypes(types=read_types(lines)), sent=sent)


def read_types(lines: str) -> tuple[LabelType, ...]:
    """Return the label types that are written one a line (``LABEL_TYPES_HELP``). Raises ValueError
    naming the line.
    """
    types = []
    for line in filter(str.strip, lines.splitlines()):
        name, _, guidance = (each.strip() for each in line.partition("|"))
        try:
            types.append(LabelType(name=name, guidance=guidance))
        except ValidationError as error:
            raise ValueError(
                f"“{line.strip()[:80]}” is no label type: a name has 1 to 60 characters, guidance"
                f" up to 500. {LABEL_TYPES_HELP}"
            ) from error
    if not types:
        raise ValueError(f"There is no label type: name at least one. {LABEL_TYPES_HELP}")
    return tuple(types)


def type_line(label_type: LabelType) -> str:
    """Return a label type as ``read_types`` reads it."""
    return label_type.name + (f" | {label_type.guidance}" if label_type.guidance else "")
