"""The team's work on a case: guidelines, rubric scores, comments, assignment and tags."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable

import streamlit as st

from masis.errors import MasisError
from masis.schema.team import Rubric, RubricScore
from masis.schema.wording import count_noun
from masis.services import CaseView, Workbench
from masis.services.drafts import comment_subject, rubric_subject
from masis.services.team import LONGEST_COMMENT
from masis.ui.modes.case_codes import show_case_codes
from masis.ui.shell import address
from masis.ui.shell.inputs import store_typed, typing_area
from masis.ui.shell.permissions import button_state, run_action
from masis.ui.shell.reviewer import actor, reviewer
from masis.views.markdown import escape_markdown
from masis.views.numbers import moment

UNSET = "–"


def show_case_work(workbench: Workbench, view: CaseView) -> None:
    """Draw failure modes, guidelines, scores, comments, assignment and tags of a case."""
    case_id = view.case.id
    show_case_codes(workbench, case_id)
    queue = address.queue()
    rubric = workbench.queues.rubric(actor(), queue.id if queue else "")
    own = queue is not None and queue.rubric is not None
    if rubric.guidelines or rubric.scores:
        of = f"“{escape_markdown(queue.name)}”" if queue and own else f"version {rubric.version}"
        with st.expander(f"Guidelines and scores ({of})", icon=":material/rule:"):
            st.text(rubric.guidelines)
            _draw_rubric_scores(workbench, case_id, rubric)
    team = workbench.team
    work, comments = team.work(actor(), case_id), team.comments(actor(), case_id)
    facts = [count_noun(len(comments), "comment")] if comments else []
    facts += [f"assigned to {', '.join(work.assignees)}"] if work.assignees else []
    facts += [", ".join(work.tags)] if work.tags else []
    title = f"Team: {escape_markdown(' · '.join(facts))}" if facts else "Comments, assignment, tags"
    with st.expander(
        title, icon=":material/group:", expanded=_had_draft_comment(workbench, case_id)
    ):
        for at, comment in comments:
            st.caption(f"{escape_markdown(comment.reviewer)}, {moment(at)} UTC")
            st.text(comment.note)
        if reviewer() is None:
            st.caption("Type your name to comment, assign and tag.")
            return
        _draw_comment_field(workbench, case_id)
        names, tags = st.columns(2)
        with names:
            _draw_add_choice(
                case_id,
                "Assign to",
                "Assign",
                team.reviewers(),
                lambda names: team.assign(actor(), [case_id], names),
            )
            _draw_remove_choice(
                "Unassign",
                work.assignees,
                lambda names: workbench.team.unassign(actor(), [case_id], names),
                "unassign",
            )
        with tags:
            tagged = workbench.store.team.count_cases("tagged")
            _draw_add_choice(
                case_id,
                "Tags",
                "Tag",
                tagged,
                # a typed name may hold several tags: "urgent, numbers"
                lambda names: team.tag(actor(), [case_id], ",".join(names).split(",")),
            )
            _draw_remove_choice(
                "Remove tags",
                work.tags,
                lambda names: workbench.team.untag(actor(), [case_id], names),
                "untag",
            )


def show_own_assignment(workbench: Workbench, case_id: str) -> None:
    """Draw the button that assigns the case to the user or removes the assignment."""
    me = actor()
    is_assigned = me.name in workbench.team.work(me, case_id).assignees

    def toggle() -> None:
        change = workbench.team.unassign if is_assigned else workbench.team.assign
        change(actor(), [case_id], [me.name])

    st.button(
        "Unassign me" if is_assigned else "Assign to me",
        icon=":material/person_remove:" if is_assigned else ":material/assignment_ind:",
        key="assign-me",
        on_click=toggle,
        width="stretch",
        **button_state("decide"),
    )


def _drafted_comment(workbench: Workbench, case_id: str) -> str:
    text = workbench.drafts.get(actor(), comment_subject(case_id)).values.get("text")
    return text if isinstance(text, str) else ""


def _had_draft_comment(workbench: Workbench, case_id: str) -> bool:
    """Return whether the case had a draft comment when this session opened it.

    The first answer is remembered, so that typing or adding a comment doesn't fold the section.
    """
    had_draft = st.session_state.setdefault("comments-left", {})
    key = f"{actor().name}/{case_id}"
    if key not in had_draft:
        had_draft[key] = bool(_drafted_comment(workbench, case_id))
    return bool(had_draft[key])


def _draw_comment_field(workbench: Workbench, case_id: str) -> None:
    """Draw the field for a comment. Its text is a draft until the comment is added."""
    subject = comment_subject(case_id)
    added = f"comments-added-{subject}"  # a part of the version, so that adding clears the field
    typing_area(
        "Comment",
        key=f"comment-{hashlib.sha256(case_id.encode()).hexdigest()[:16]}",
        text=_drafted_comment(workbench, case_id),
        version=f"{actor().name}/{case_id}/{st.session_state.get(added, 0)}",
        most=LONGEST_COMMENT,
        rows=3,
        on_text=lambda text: workbench.drafts.save(actor(), subject, {"text": text}),
    )
    failed = f"comment-failed-{subject}"

    def add() -> None:
        store_typed()
        try:
            workbench.team.comment(actor(), case_id, _drafted_comment(workbench, case_id))
            workbench.drafts.clear(actor(), subject)
        except MasisError as error:
            st.session_state[failed] = str(error)
        else:
            st.session_state[added] = st.session_state.get(added, 0) + 1

    st.button("Add comment", key="add-comment", on_click=add, **button_state("decide"))
    if error := st.session_state.pop(failed, None):
        st.warning(escape_markdown(error))


def _draw_rubric_scores(workbench: Workbench, case_id: str, rubric: Rubric) -> None:
    chosen = workbench.drafts.get(actor(), rubric_subject(case_id)).values
    for score in rubric.scores:
        key = f"rubric/{case_id}/{score.name}"
        options = [UNSET, *_score_options(score)]
        value = chosen.get(score.name)
        st.session_state[key] = value if value in options else UNSET
        st.segmented_control(
            escape_markdown(score.name),
            options,
            format_func=lambda option: escape_markdown(str(option)),
            key=key,
            required=True,
            help=escape_markdown(score.guidance) or None,
            on_change=_store_score,
            args=(workbench, case_id, score.name, key),
        )


def _score_options(score: RubricScore) -> list[int | str]:
    if score.low is None or score.high is None:
        return list(score.categories)
    return list(range(score.low, score.high + 1))


def _store_score(workbench: Workbench, case_id: str, name: str, key: str) -> None:
    value = st.session_state[key]
    if value in (None, UNSET):
        workbench.drafts.clear(actor(), rubric_subject(case_id), name)
    else:
        workbench.drafts.save(actor(), rubric_subject(case_id), {name: value})


def _draw_add_choice(
    case_id: str, label: str, button: str, known: Iterable[str], add: Callable[[list[str]], object]
) -> None:
    """Draw the choice of people or tags to add to a case, with known and typed names."""
    added = f"added-{button}-{case_id}"
    with st.form(f"case-{button}", clear_on_submit=True, border=False):
        names = st.multiselect(
            label, list(known), accept_new_options=True, placeholder="Choose or type a name"
        )
        sent = st.form_submit_button(button, **button_state("decide"))
    if sent and run_action(lambda: add(names)):
        st.session_state[added] = f"{label} {', '.join(names)}: done"
        st.rerun()
    if message := st.session_state.pop(added, None):
        st.caption(escape_markdown(message))


def _draw_remove_choice(
    label: str, names: tuple[str, ...], remove: Callable[[tuple[str, ...]], object], key: str
) -> None:
    if not names:
        return
    chosen = st.pills(
        label,
        names,
        selection_mode="single",
        key=f"case-{key}",
        format_func=lambda name: f"{escape_markdown(name)} ✕",
    )
    if chosen is not None and run_action(lambda: remove((chosen,))):
        st.rerun()
