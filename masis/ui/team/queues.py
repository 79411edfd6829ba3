"""The section of the Team page that sets up named queues, and shows their figures."""

from __future__ import annotations

from typing import Any

import streamlit as st

from masis.schema.team import MOST_REVIEWERS, LabelTypes, Rubric
from masis.services import Workbench
from masis.services.desk import changed_queue
from masis.services.queues import QueueFigures
from masis.services.records import FIRST_QUEUE_NAME, ReviewQueue
from masis.services.trust.summary import agreement_text
from masis.ui.components.linked_table import LinkedRow, column, linked_table, row
from masis.ui.queue.filling import CHANGED_QUEUE, NEW_QUEUE
from masis.ui.shell import address
from masis.ui.shell.permissions import button_state, run_action
from masis.ui.shell.reviewer import actor
from masis.views.markdown import escape_markdown
from masis.views.numbers import moment
from masis.views.policy_words import MACHINE, RUBRIC_HELP, RULES, read_scores, score_line
from masis.views.queues import fill_text, left_text, policy_text

MOST_VERSIONS = 20


def draw_queues(workbench: Workbench) -> None:
    """Draw the table of the named queues, and the form of the chosen one."""
    st.caption(
        "A queue contains the cases that match a filter, and has its own policy, rubric, label"
        f" types, instructions and people. “{FIRST_QUEUE_NAME}” has every case, under the team's"
        " policy, and can't be archived. A case stays open in each of its queues until it's decided"
        " there."
    )
    me = actor()
    queues = workbench.queues.all(me, archived=True)
    if not queues:
        st.markdown(f"**There is only “{FIRST_QUEUE_NAME}”.**")
    st.page_link(
        "pages/queue.py",
        label="Create a queue",
        icon=":material/add:",
        query_params={"fill": NEW_QUEUE},
        disabled=not workbench.access.allows(me, "oversee"),
        help="Filter the list of cases, and name the queue.",
    )
    if not queues:
        return
    figures = {queue.id: workbench.queues.figures(me, queue.id) for queue in queues}
    linked_table(
        [
            column("Queue"),
            column("Filled by", "main"),
            column("Left", "main"),
            column("Agreement", hide="hide-medium"),
        ],
        [_queue_row(workbench, figures[queue.id]) for queue in queues],
        description="Named queues",
        key="team-queues",
    )
    names = {queue.id: f"{queue.name}{' (archived)' if queue.archived else ''}" for queue in queues}
    chosen = address.value("queue")
    queue_id = st.selectbox(
        "Set up",
        list(names),
        format_func=names.__getitem__,
        width=320,
        **address.bind_query_param(
            "queue",
            shows=chosen if chosen in names else queues[0].id,
            key="queue-set-up",
            drops=(),
        ),
    )
    _draw_setup(workbench, figures[queue_id].queue)


def _queue_row(workbench: Workbench, figures: QueueFigures) -> LinkedRow:
    queue, me = figures.queue, actor()
    agreement = workbench.trust.people(me, queue=queue.id).agreement
    return row(
        {
            "text": queue.name,
            "href": address.link("queue", queue=queue.id),
            "below": ["archived"] if queue.archived else [],
        },
        {"text": fill_text(queue.cases), "below": [policy_text(queue)]},
        {"text": left_text(figures)},
        {
            "text": agreement_text(agreement.alpha) if agreement.units else "–",
            "href": address.link("trust", queue=queue.id),
        },
    )


def _draw_setup(workbench: Workbench, queue: ReviewQueue) -> None:
    """Draw the form that changes a queue, the button that archives it, and its history."""
    form, history = st.columns([3, 2], gap="large")
    with form:
        st.page_link(
            "pages/queue.py",
            label="Change its filter",
            icon=":material/filter_list:",
            query_params={**address.filter_parameters(queue.cases), "fill": queue.id},
            disabled=not workbench.access.allows(actor(), "oversee"),
        )
        with st.form(f"queue-{queue.id}-{queue.version}"):
            changes = _ask_changes(workbench, queue)
            sent = st.form_submit_button(
                "Set up this queue", type="primary", **button_state("oversee")
            )
        if sent and run_action(lambda: _change_queue(workbench, queue, changes)):
            st.session_state[CHANGED_QUEUE] = (queue.id, queue.version)
            st.rerun()
        changed, before = st.session_state.pop(CHANGED_QUEUE, ("", 0))
        if changed == queue.id and before == queue.version:
            st.info(f"Nothing has changed. Version {before} is still in force.")
        elif changed == queue.id:
            st.success(f"Version {queue.version} is now in force.")
    with history:
        archive = st.button(
            "Restore this queue" if queue.archived else "Archive this queue",
            key="archive-queue",
            icon=":material/unarchive:" if queue.archived else ":material/archive:",
            **button_state("oversee"),
        )
        st.caption("The decisions, labels and versions of an archived queue are kept.")
        if archive and run_action(
            lambda: workbench.queues.archive(actor(), queue.id, restore=queue.archived)
        ):
            st.rerun()
        _draw_history(workbench, queue)


def _ask_changes(workbench: Workbench, queue: ReviewQueue) -> dict[str, Any]:
    """Draw the fields of a queue, and return their values by name."""
    policy, rubric = queue.policy, queue.rubric or Rubric()
    name = st.text_input("Name", queue.name, max_chars=60)
    people = st.text_input(
        "People, separated by commas",
        ", ".join(queue.people),
        placeholder="Everybody",
        help="Only they are offered its cases and can decide them. Names as in the log.",
    )
    reviewers = st.number_input("Reviewers per case", 1, MOST_REVIEWERS, policy.reviewers)
    rule = st.selectbox(
        "How the verdict is decided",
        list(RULES),
        list(RULES).index(policy.rule),
        format_func=lambda option: RULES[option][0],
    )
    agree = st.number_input("Reviewers who have to agree", 1, MOST_REVIEWERS, policy.agree)
    machine = st.selectbox(
        "When reviewers see the audit",
        list(MACHINE),
        list(MACHINE).index(policy.machine),
        format_func=lambda option: MACHINE[option][0],
        help="If a case is in several queues, the strictest choice holds everywhere.",
    )
    types = workbench.store.team.in_force(LabelTypes).names
    offered = st.multiselect(
        "Label types",
        types,
        [kind for kind in queue.label_types if kind in types],
        placeholder="All of the team's",
    )
    instructions = st.text_area(
        "Instructions, collapsed above each case's form",
        queue.instructions,
        max_chars=20_000,
        height=120,
    )
    guidelines = st.text_area(
        "Guidelines of its own rubric", rubric.guidelines, max_chars=20_000, height=80
    )
    lines = st.text_area(
        "Scores of its own rubric",
        "\n".join(map(score_line, rubric.scores)),
        max_chars=20_000,
        height=80,
        placeholder="The team's rubric, if both fields are empty",
        help=RUBRIC_HELP,
    )
    return {
        "name": name,
        "people": tuple(dict.fromkeys(part.strip() for part in people.split(",") if part.strip())),
        "policy": {"reviewers": reviewers, "rule": rule, "agree": agree, "machine": machine},
        "label_types": tuple(offered),
        "instructions": instructions.strip(),
        "guidelines": guidelines.strip(),
        "scores": lines,
    }


def _change_queue(workbench: Workbench, queue: ReviewQueue, changes: dict[str, Any]) -> None:
    guidelines, scores = changes.pop("guidelines"), read_scores(changes.pop("scores"))
    own = Rubric(guidelines=guidelines, scores=scores)
    changes["rubric"] = own if guidelines or scores else None
    workbench.queues.change(actor(), changed_queue(queue, changes))


def _draw_history(workbench: Workbench, queue: ReviewQueue) -> None:
    """Draw the versions of a queue, newest first, with the fields that each changed."""
    st.markdown("**History**")
    before: dict[str, Any] = {}
    lines = []
    for at, by, version in workbench.store.team.queue_history(queue.id):
        content = version.model_dump(exclude={"version", "id"})
        changed = [name for name, value in content.items() if before.get(name) != value]
        title = f"Version {version.version}, {escape_markdown(by)}, {moment(at)} UTC"
        words = ", ".join(name.replace("_", " ") for name in changed) if before else "created"
        lines.append((title, words))
        before = content
    for title, words in lines[: -MOST_VERSIONS - 1 : -1]:
        st.caption(title)
        st.text(words)
