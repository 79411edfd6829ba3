"""What the kept studies say together: a table of findings, a plot of their directions, the criteria, the flow."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd
import streamlit as st

from masis.schema.screening import DIRECTIONS, Abstract, Direction, Grade, Screening
from masis.screening.synthesis.criteria import Criterion, criteria_of
from masis.screening.synthesis.findings import DIRECTION_NAMES, Finding, Synthesis
from masis.screening.synthesis.prisma_svg import DARK, PAGE, prisma_svg
from masis.services.screening import OpenedScreening
from masis.ui.components.charts import ROWS, draw_chart
from masis.ui.components.linked_table import Row, column, linked_table, row
from masis.ui.screening.view import flow_steps
from masis.ui.screening.wording import DESIGN, OVERRIDDEN, size_words
from masis.ui.shell import address
from masis.ui.shell.address import link
from masis.ui.shell.wording import Tone, Word, escaped, label

SIGN: dict[Direction, str] = {"effect": "▲", "no_clear_effect": "◄►", "opposite": "▼", "unclear": "?"}
"""The signs of an effect direction plot (Boon and Thomson, Res Synth Methods 2021;12:29)."""
LONGEST_TITLE = 140


def show_findings(opened: OpenedScreening) -> None:
    """Draw the summary of findings: a study a row with what it found, and how many point where."""
    found = opened.synthesis
    st.header("Summary of findings")
    if not found.findings:
        st.caption("Nothing is kept, so there is nothing to summarise.")
        return
    verdict = {True: "The kept studies agree.", False: "The kept studies conflict.", None: ""}[found.agree]
    st.markdown(f"{f'**{verdict}** ' if verdict else ''}{escaped(found.summary)}")
    rows = [finding_row(opened, each) for each in found.findings]
    clicked = linked_table(COLUMNS, rows, description="Findings of the kept studies", key="screening-findings")
    if clicked is not None and clicked != address.value("abstract"):
        address.put("abstract", clicked)
        st.session_state["screening-reveal"] = clicked
        st.rerun()
    st.caption(
        "Best quality first. The direction is read from the wording of the sentence below each title: check it before "
        "you rely on it, and open the study to correct it. Effects are not pooled."
    )


COLUMNS = [
    column("Study and finding", "main"),
    column("Direction", "pills"),
    column("Design", hide="hide-narrow"),
    column("Quality", "figure"),
]
TONES: dict[Direction, Tone] = {"effect": "good", "no_clear_effect": "warn", "opposite": "bad", "unclear": "calm"}


def finding_row(opened: OpenedScreening, found: Finding) -> Row:
    """Return one study as a row of the table, with the sentence that says what it found."""
    abstract = opened.abstracts.get(found.abstract_id) or Abstract(id=found.abstract_id)
    grade = opened.screening.grade(found.abstract_id)
    said = found.words.text if found.words else "There is no text to read."
    directions = [label(Word(f"{SIGN[found.direction]} {DIRECTION_NAMES[found.direction]}", TONES[found.direction]))]
    if grade is not None and grade.direction is not None:
        directions.append(label(OVERRIDDEN))
    return row(
        {
            "text": study_name(abstract),
            "href": link("screening", screening=opened.screening.id, abstract=found.abstract_id),
            "open": found.abstract_id,
            "quote": " ".join(said.split()),
        },
        {"pills": directions},
        {"text": _design(grade), "below": [size_words(grade) or "size not reported"] if grade else []},
        {"score": None if grade is None else grade.quality},
        open=found.abstract_id,
    )


def study_name(abstract: Abstract) -> str:
    """Return ``Doe 2019: Aspirin for headache``: the first author and year where known, and the title."""
    first = abstract.authors[0].split(",")[0].split(" ")[0] if abstract.authors else ""
    lead = " ".join(part for part in (first, str(abstract.year or "")) if part)
    title = (abstract.title or abstract.id)[:LONGEST_TITLE]
    return f"{lead}: {title}" if lead else title


def _design(grade: Grade | None) -> str:
    return DESIGN[grade.design] if grade and grade.design else "not recognised"


def direction_rows(opened: OpenedScreening, found: Synthesis) -> list[dict[str, Any]]:
    """Return how many studies of each design point where, as rows of the plot; every direction has one."""
    rows: dict[tuple[str, str], int] = {}
    for each in found.findings:
        key = DIRECTION_NAMES[each.direction], _design(opened.screening.grade(each.abstract_id))
        rows[key] = rows.get(key, 0) + 1
    return [{"direction": direction, "design": design, "studies": count} for (direction, design), count in rows.items()]


def direction_chart() -> alt.TopLevelMixin:
    """Describe the plot: a bar a direction, its parts the designs."""
    order = [DIRECTION_NAMES[name] for name in DIRECTIONS]
    scale = alt.Scale(domain=order)
    legend = alt.Legend(orient="bottom", columns=1, labelLimit=260, symbolSize=70)
    drawn: alt.Chart = alt.Chart(ROWS, height=260).mark_bar()
    return drawn.encode(
        y=alt.Y("direction:N", title=None, sort=order, scale=scale, axis=alt.Axis(labelLimit=190)),
        x=alt.X("studies:Q", title="Kept studies", axis=alt.Axis(tickMinStep=1, format="d")),
        color=alt.Color("design:N", title=None, legend=legend),
        tooltip=[
            alt.Tooltip("direction:N", title="Direction"),
            alt.Tooltip("design:N", title="Design"),
            alt.Tooltip("studies:Q", title="Studies"),
        ],
    )


def show_flow(opened: OpenedScreening) -> None:
    """Draw the PRISMA 2020 flow as a picture beside how many kept studies point where."""
    flow, plot = st.columns([58, 42], gap="large")
    with flow:
        st.header("Flow")
        dark = st.context.theme.type == "dark"
        st.image(
            prisma_svg(opened.screening, DARK if dark else PAGE),
            width="stretch",
            alt="PRISMA 2020 flow diagram: the table below has the same numbers",
        )
        with st.expander("The flow as a table"):
            st.table(flow_frame(opened.screening), border="horizontal", alt="PRISMA flow")
    with plot:
        st.header("Direction of effect")
        if opened.synthesis.findings:
            rows = direction_rows(opened, opened.synthesis)
            draw_chart(direction_chart, rows=rows, description="Direction of effect by design")
        else:
            st.caption("Nothing is kept, so there is no direction to count.")


def flow_frame(screening: Screening) -> pd.DataFrame:
    """Return the PRISMA flow as Markdown cells: a step a row, and what left the flow there."""
    rows = [
        {
            "Step": step["name"],
            "Abstracts": f"**{step['count']:,}**",
            "Removed here": " · ".join(
                [step["left_title"], *(f"{each['count']:,} {escaped(each['name'])}" for each in step["left"])]
            ),
        }
        for step in flow_steps(screening.flow)
    ]
    return pd.DataFrame(rows)


def show_criteria(screening: Screening) -> None:
    """Draw the criteria that the team wrote before screening; nothing where there are none."""
    criteria = criteria_of(screening.settings)
    if not criteria:
        return
    with st.expander(f"Criteria of the team ({len(criteria)})", icon=":material/checklist:"):
        for head, kind in (("Include", "include"), ("Exclude", "exclude")):
            chosen = [each for each in criteria if each.kind == kind]
            if chosen:
                st.markdown(f"**{head}**")
                st.text("\n".join(f"• {each.text}" for each in chosen))
        st.caption("They are for people: set an abstract to discard, choose one as the reason, and the flow counts it.")


def criterion_reasons(criteria: tuple[Criterion, ...]) -> list[str]:
    """Return the criteria as reasons to discard."""
    return [each.reason for each in criteria]
