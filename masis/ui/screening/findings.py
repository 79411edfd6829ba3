"""What the kept studies say together: a table of findings, a plot of their directions, the criteria, the flow."""

from __future__ import annotations

from typing import Any

import streamlit as st

from masis.schema.screening import Abstract, Direction, Grade, Screening
from masis.screening.synthesis.criteria import Criterion, criteria_of
from masis.screening.synthesis.findings import Finding, Synthesis
from masis.screening.synthesis.prisma_svg import DARK, PAGE, prisma_svg
from masis.services.screening import OpenedScreening
from masis.ui.components.charts import draw_chart
from masis.ui.components.linked_table import Row, column, linked_table, row
from masis.ui.shell import address
from masis.ui.shell.address import link
from masis.views.charts import direction_chart
from masis.views.markdown import escaped
from masis.views.rounds import flow_frame
from masis.views.screening import DESIGN, DIRECTION, OVERRIDDEN, size_text
from masis.views.words import label

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


def finding_row(opened: OpenedScreening, found: Finding) -> Row:
    """Return one study as a row of the table, with the sentence that says what it found."""
    abstract = opened.abstracts.get(found.abstract_id) or Abstract(id=found.abstract_id)
    grade = opened.screening.grade(found.abstract_id)
    said = found.words.text if found.words else "There is no text to read."
    word = DIRECTION[found.direction]
    directions = [label(word._replace(text=f"{SIGN[found.direction]} {word.text}"))]
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
        {"text": _design(grade), "below": [size_text(grade) or "size not reported"] if grade else []},
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
        key = DIRECTION[each.direction].text, _design(opened.screening.grade(each.abstract_id))
        rows[key] = rows.get(key, 0) + 1
    return [{"direction": direction, "design": design, "studies": count} for (direction, design), count in rows.items()]


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
            st.table(flow_frame(opened.screening.flow), border="horizontal", alt="PRISMA flow")
    with plot:
        st.header("Direction of effect")
        if opened.synthesis.findings:
            rows = direction_rows(opened, opened.synthesis)
            draw_chart(direction_chart, rows=rows, description="Direction of effect by design")
        else:
            st.caption("Nothing is kept, so there is no direction to count.")


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
