"""Retention: what is past its time and why the rest stays, removing it, what was removed; the log of executions."""

from __future__ import annotations

import time
from typing import Any

import streamlit as st

from masis.errors import StoreError
from masis.schema.retention import Execution, Purge, PurgePlan, RetentionRule
from masis.services import Actor, Workbench
from masis.services.retention import Purged, rule_of
from masis.ui.admin.retention_components import execution_log, purge_history, purge_plan
from masis.ui.shell import address
from masis.ui.shell.reviewer import actor, name_reviewer, reviewer
from masis.ui.shell.served_database import command_markdown
from masis.ui.shell.wording import STOPPED, spoken

_SHOWN, _DONE, _LOOKED = "retention-plan", "retention-done", "retention-looked"
LOOKED_FOR_S = 60.0
"""How long what would go is taken for what would go now: removing asks the rule again, run by run."""

LISTED = 50
"""Runs of a plan that are named on the page; `masis purge --dry-run --list` names all."""

EXECUTIONS = 25
CONFIRMED_BY = "remove"


def show_retention(workbench: Workbench) -> None:
    """The page of retention."""
    st.title("Retention")
    days = workbench.settings.retention_days
    held = f"for {spoken(days, 'day')}" if days else "for ever"
    own = " It works by itself once a day." if workbench.settings.retention_auto and days else ""
    st.markdown(
        f"Audits and screenings are kept {held} (`retention_days`).{own} What people decided on is kept for good, "
        "unless you say otherwise here. Cases, decisions, the figures of every audit and the log of executions stay in "
        "any case."
    )
    plan = _looked(workbench, _asked(days))
    st.subheader("What is past its time")
    purge_plan(plan_data(plan), key="purge-plan")
    if plan.goes:
        _removal(workbench, plan)
    _told()
    _history(workbench)
    _executions(workbench)


def _looked(workbench: Workbench, rule: RetentionRule) -> PurgePlan:
    """What the rule would do now; looked at a moment ago for this page, it isn't looked for again at every key."""
    held: tuple[float, PurgePlan] | None = st.session_state.get(_LOOKED)
    if held is not None and time.monotonic() - held[0] < LOOKED_FOR_S and _alike(held[1].rule, rule):
        return held[1]
    with st.spinner("Looking what is past its time"):
        plan = workbench.retention.plan(rule)
    st.session_state[_LOOKED] = (time.monotonic(), plan)
    return plan


def _alike(one: RetentionRule, other: RetentionRule) -> bool:
    """Whether two rules say the same, reckoned from different moments."""
    return one.model_copy(update={"cutoff": other.cutoff}) == other


def _asked(days: int) -> RetentionRule:
    """The rule that the controls say; ages and boxes stand in the address."""
    default = days or 30
    older = address.number("days") if address.value("days") else default
    st.session_state["retention-days"] = min(older, 36_500)
    decided, waiting = address.value("decided") == "yes", address.value("waiting") != "no"
    st.session_state["retention-decided"], st.session_state["retention-waiting"] = decided, waiting
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        st.number_input(
            "Ended longer ago than this many days",
            min_value=1,
            max_value=36_500,
            key="retention-days",
            on_change=_choose_days,
            args=(default,),
            width=280,
        )
        for name, title, about in (
            ("decided", "With what people decided on", "The decisions stay; the audits they are about go."),
            ("waiting", "With what waits for a person", "Those cases are then to be audited again."),
        ):
            st.checkbox(title, key=f"retention-{name}", on_change=_choose, args=(name,), help=about)
    return rule_of(st.session_state["retention-days"], decided=decided, waiting=waiting)


PLAIN = {"decided": False, "waiting": True}
"""What goes where nobody says otherwise: what is not in the address."""


def _choose_days(default: int) -> None:
    chosen = st.session_state["retention-days"]
    address.put("days", "" if chosen == default else str(chosen))


def _choose(name: str) -> None:
    chosen = st.session_state[f"retention-{name}"]
    address.put(name, "" if chosen == PLAIN[name] else "yes" if chosen else "no")


def plan_data(plan: PurgePlan) -> dict[str, Any]:
    """A plan as the page draws it."""
    return {
        "goes": {
            "amount": spoken(plan.runs, "audit") if not plan.screenings else _both(plan.runs, plan.screenings),
            "of": f"of {_both(plan.runs_in_all, plan.screenings_in_all)}",
            "parts": [
                *([f"{plan.waiting:,} waiting for a person"] if plan.waiting else []),
                *(spoken(count, name[:-1]) for name, count in plan.parts.model_dump().items() if count),
            ],
            "size": size_words(plan.bytes),
        },
        "kept": [{"count": f"{count:,}", "why": KEPT[why]} for why, count in sorted(plan.kept.items()) if why in KEPT],
        "rows": [
            {
                "kind": each.kind.replace("_", " "),
                "id": each.id,
                "about": each.about[:200],
                "ended_at": each.ended_at[:16].replace("T", " "),
                "state": each.state,
                "size": size_words(each.bytes),
                "href": address.link("review", case=each.about) if each.kind == "run" else "",
            }
            for each in plan.goes[:LISTED]
        ],
        "more": max(0, len(plan.goes) - LISTED),
    }


KEPT = {"decided": "kept for what people decided", "waiting": "kept since a person has yet to decide"}


def _both(runs: int, screenings: int) -> str:
    return f"{spoken(runs, 'audit')} and {spoken(screenings, 'screening')}" if screenings else spoken(runs, "audit")


def size_words(size: int) -> str:
    """Bytes in the unit that suits them."""
    return f"{size / 1e6:,.1f} MB" if size >= 1e6 else f"{size / 1e3:,.0f} kB"


def _removal(workbench: Workbench, plan: PurgePlan) -> None:
    """Removing it: by a name, and by typing a word, so that no single click does it."""
    with st.form("purge", border=True):
        st.markdown(
            "**Remove it for good?** It can't be brought back from here; an archive made before "
            f"({command_markdown('masis export --out archive.jsonl')}) still holds it."
        )
        who, word, go = st.columns([3, 3, 2], vertical_alignment="bottom")
        by = who.text_input("Your name, for the record", value=reviewer() or "", max_chars=200)
        typed = word.text_input(f"Type “{CONFIRMED_BY}”", max_chars=40)
        pressed = go.form_submit_button("Remove", icon=":material/auto_delete:", type="primary", width="stretch")
    # what is removed is what was shown when the button was pressed, not what has come of age since
    shown: RetentionRule = st.session_state.get(_SHOWN, plan.rule)
    st.session_state[_SHOWN] = plan.rule
    if not pressed:
        return
    if typed.strip().casefold() != CONFIRMED_BY:
        st.warning(f"Nothing was removed: type “{CONFIRMED_BY}” first.", icon=":material/warning:")
    elif name_reviewer(workbench, by) is None:
        st.warning("Nothing was removed: say who you are first.", icon=":material/warning:")
    else:
        _remove(workbench, shown if _alike(shown, plan.rule) else plan.rule, len(plan.goes), actor())


def _remove(workbench: Workbench, rule: RetentionRule, total: int, by: Actor) -> None:
    bar = st.progress(0.0, "Removing")

    def move(to: int) -> None:
        bar.progress(min(1.0, to / max(1, total)), "Removing")

    st.session_state.pop(_LOOKED, None)
    try:
        done = workbench.retention.purge(by, rule, how="page", on_batch=move)
    except StoreError as error:
        st.error("Not all of it could be removed now. What was removed is recorded below.", icon=":material/error:")
        st.text(str(error))
        return
    st.session_state[_DONE] = done
    st.rerun()


def _told() -> None:
    """What the removal just made came to."""
    done: Purged | None = st.session_state.pop(_DONE, None)
    if done is None:
        return
    if done.purge is None:
        st.info("There was nothing left to remove.", icon=":material/info:")
        return
    st.success(f"{_both(done.purge.runs, done.purge.screenings)} removed.", icon=":material/check_circle:")
    if done.lingers:
        st.caption(
            "Another program still reads the database as it was; what was removed is on the disk until that ends."
        )
    if done.shrunk is not None:
        size = f"The file had {size_words(done.shrunk.before)} and has {size_words(done.shrunk.after)} now."
        st.caption(f"{size}{f' It did not give all room back: {done.shrunk.why_not}.' if done.shrunk.why_not else ''}")


def _history(workbench: Workbench) -> None:
    st.subheader("What was removed")
    purges = workbench.retention.history()
    if not purges:
        st.caption("Nothing so far. Each removal is recorded here, without a word of what was removed.")
        return
    purge_history({"rows": [_purge_row(each) for each in purges]}, key="purge-history")


HOW = {"command": "command line", "page": "this page", "automatic": "by itself", "redaction": "redaction of a case"}


def _purge_row(each: Purge) -> dict[str, Any]:
    return {
        "seq": each.seq,
        "at": each.at,
        "by": each.by,
        "how": HOW[each.how],
        "rule": f"ended before {each.rule.cutoff[:10]}{each.rule.departures}",
        "amount": _both(each.runs, each.screenings),
        "parts": ", ".join(spoken(count, name[:-1]) for name, count in each.parts.model_dump().items() if count),
        "size": size_words(each.bytes),
    }


def _executions(workbench: Workbench) -> None:
    """The log of executions, which outlasts what is removed."""
    st.subheader("Log of executions")
    number = address.number("page")
    page = workbench.runs.executions(number, EXECUTIONS)
    pages = max(1, -(-page.total // EXECUTIONS))
    if not page.total:
        st.caption("No audit has ended yet. Each leaves a line here that outlasts it.")
        return
    if number > pages:
        address.put("page", str(pages) if pages > 1 else "")
        st.rerun()
    every = command_markdown("masis export --format executions")
    st.caption(f"{spoken(page.total, 'execution')}, newest first; {every} writes all.")
    execution_log({"rows": [_execution_row(each) for each in page.rows]}, key="executions")
    if pages > 1:
        st.session_state["executions-page"] = number
        st.pagination(pages, key="executions-page", on_change=_turn)


def _turn() -> None:
    chosen = st.session_state["executions-page"]
    address.put("page", str(chosen) if chosen > 1 else "")


def _execution_row(each: Execution) -> dict[str, Any]:
    return {
        "at": each.at,
        "case": each.case_id,
        "href": address.link("review", case=each.case_id),
        "run": each.run_id,
        "iterations": each.iterations,
        "quality": each.final_quality,
        "improvement": each.improvement,
        "ended": each.termination.replace("_", " "),
        "meaning": "its process was cut short" if each.termination == "abandoned" else STOPPED[each.termination],
        "models": ", ".join(dict.fromkeys(each.models.values())),
        "version": each.app,
    }
