"""The exam section of the settings page, with the exam's cost, progress and result."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from masis.api.roles import offered_models
from masis.errors import MasisError
from masis.schema.exam import JUDGING_ROLES, ExamStanding, joined_name
from masis.services import Workbench
from masis.services.exams import ExamService
from masis.ui.live import draw_task, show_live
from masis.ui.shell.permissions import action
from masis.ui.shell.reviewer import acting
from masis.views.exam import (
    exam_conditions,
    exam_costs,
    exam_effort,
    exam_figures,
    exam_kinds,
    exam_line,
)

IN_USE = "The models in use"
OTHER = "Another model"
LONGEST_NAME = 300


def show_exam(workbench: Workbench) -> None:
    """Draw the exam: its examinee, its cost, the button, and its result."""
    st.header("Exam", anchor="exam")
    st.caption(
        "The models judge 32 short answers, 16 of them with one known fault, just as in an audit."
        " Until they pass, every answer needs a person. A result applies only to this combination"
        " of models, addresses and prompts."
    )
    left, right = st.columns(2, gap="large")
    with left:
        model = _choose_examinee(workbench)
    latest = workbench.exams.latest()
    if latest is not None and not latest.over:
        with left:
            show_live(_draw_step)
        return
    if model is None:
        return
    try:
        expected, standing = workbench.exams.cost(model), workbench.exams.status(model)
    except MasisError as error:
        with left:
            st.warning("This model can't take the exam.", icon=":material/error:")
            st.text(str(error))
        return
    with left:
        if latest is not None and latest.failed:
            st.warning("The exam didn't finish. Nothing was stored.", icon=":material/error:")
            st.text(f"{latest.name}: {latest.failed}")
        elif latest is not None and latest.result is None:
            st.text("The exam was stopped. Nothing was stored.")
        in_use = {role: getattr(workbench.settings, role) for role in JUDGING_ROLES}
        st.text(f"{model or joined_name(in_use)} {exam_line(standing)}.")
        st.caption(exam_costs(*expected))
        label = "Take the exam again" if standing.result else "Start the exam"
        action(
            label,
            "exam-start",
            "school",
            acting(workbench.exams.start, model),
            requires="configure",
            type="primary",
        )
    with right:
        _draw_exam_result(standing)


def _choose_examinee(workbench: Workbench) -> str | None:
    """Let the user choose the examinee: "" means the models in use, None a name not typed yet."""
    offered = dict.fromkeys(
        # A comma joins two verifiers, and the exam tests one.
        model
        for model in offered_models(workbench.settings, "verifier")
        if "," not in model
    )
    chosen = st.selectbox("Models to test", [IN_USE, *offered, OTHER], key="exam-model")
    if chosen == OTHER:
        name = st.text_input(
            "Name of the model",
            key="exam-model-name",
            max_chars=LONGEST_NAME,
            placeholder="PROVIDER:MODEL or local:ORG/NAME",
        )
        return name.strip() or None
    return "" if chosen == IN_USE else str(chosen)


def _draw_step() -> bool:
    return draw_task(
        ExamService.latest,
        "exam",
        "exam-stop",
        says="You can leave this page. The exam continues.",
        requires="configure",
        stopped="Nothing is stored, because half an exam has no result.",
    )


def _draw_exam_result(standing: ExamStanding) -> None:
    result = standing.result or standing.earlier
    if result is None:
        return
    if standing.result is None:
        st.caption("The last result of these models, which doesn't count here:")
    if not result.passed:
        st.caption("Every answer they judge waits for a person. Another model may pass.")
    figures = pd.DataFrame(
        [(figure.title, figure.counted, figure.interval) for figure in exam_figures(result)],
        columns=["Exam", "Answers", "95% interval"],
    )
    st.table(figures, border="horizontal", alt="Result of the exam")
    with st.expander("By kind of answer, with the models and prompts it applies to"):
        titles = ["Kind", "Faulty, flagged", "Faulty, accepted", "Correct, flagged"]
        kinds = pd.DataFrame(exam_kinds(result), columns=titles)
        st.table(kinds, border="horizontal", alt="Result of the exam by kind of answer")
        st.text("\n".join((exam_effort(result), *exam_conditions(result))))
