"""A finished screening: its outcome, rounds, findings and flow, and the table of abstracts.

From here, users can audit the kept abstracts, screen further or with other concepts, and export the
result. The abstract in the address is drawn by ``abstract.py``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
import streamlit as st

from masis.schema.case import Case
from masis.schema.screening import (
    Abstract,
    Direction,
    Grade,
    Recommendation,
    Round,
    Screening,
    Thresholds,
)
from masis.schema.wording import count_noun
from masis.screening.grading.directions import Finding
from masis.screening.grading.question import (
    LONGEST_CONCEPTS,
    PARTS,
    Part,
    concepts_as_text,
    question_of,
    read_question,
)
from masis.screening.ranking.learning import ReadingOrder
from masis.screening.readers import read_abstracts
from masis.screening.services import screening_service
from masis.screening.services.jobs import ScreeningJobs
from masis.screening.services.screenings import OpenedScreening, ScreeningFile
from masis.screening.synthesis.prisma import DARK, PAGE, criteria_of, prisma_svg
from masis.screening.ui.abstract import draw_neighbor_buttons, show_abstract
from masis.screening.ui.actions import (
    PROBLEM_KEY,
    attempt,
    has_reviewer_name,
    name_field,
    open_screening,
    show_problem,
)
from masis.screening.ui.form import CONCEPT_HINT, CONCEPT_NAMES
from masis.screening.views.abstract import facts
from masis.screening.views.charts import (
    AVERAGE,
    KEEP,
    NEEDED,
    REQUIRED,
    convergence_chart,
    direction_chart,
)
from masis.screening.views.rounds import flow_frame, rules_text, votes_text
from masis.screening.views.words import (
    DESIGN,
    DIRECTION,
    OUTCOME,
    OVERRIDDEN,
    RECOMMENDATION,
    RECOMMENDATIONS,
    SUFFICIENCY,
    missing_abstracts_text,
    rule_text,
    size_text,
)
from masis.services import Workbench
from masis.trust.agreement import Patterns, krippendorff_alpha
from masis.ui.components.case_head import case_head
from masis.ui.components.charts import draw_chart
from masis.ui.components.linked_table import LinkedRow, TableColumn, column, linked_table, row
from masis.ui.live import served_jobs
from masis.ui.shell import address
from masis.ui.shell.address import link
from masis.ui.shell.frame import tab_title
from masis.ui.shell.permissions import action
from masis.ui.shell.reviewer import actor
from masis.ui.shell.served_database import served_workbench
from masis.ui.shell.streamlit_internals import with_selectors
from masis.views.markdown import badge, escape_markdown
from masis.views.numbers import moment
from masis.views.words import LabelData, label

PAGE_SIZE = 15
MOST_FURTHER = 8
LONGEST_TITLE = 140
SIGN: dict[Direction, str] = {
    "effect": "▲",
    "no_clear_effect": "◄►",
    "opposite": "▼",
    "comparable": "=",
    "unclear": "?",
}
"""The signs of an effect direction plot (Boon and Thomson, Res Synth Methods 2021;12:29)."""
_STYLE = """<style>
@media (max-width: 1100px) {
  :is(.st-key-screening-flow, .st-key-screening-course) @st-column { min-width: 100%; } }
</style>"""
"""On a narrow window charts move below the text; at half width letters are 7 pixels high."""
Order = Literal["quality", "relevance", "found", "size", "next"]
ORDERS: dict[Order, str] = {
    "quality": "Best quality first",
    "relevance": "Most relevant first",
    "size": "Largest study first",
    "found": "As they were found",
    "next": "Undecided, next to read first",
}


def show_finished_screening(workbench: Workbench, screening_id: str) -> None:
    """Draw the page of one finished screening."""
    if handed := st.session_state.pop("screening-handed", None):
        st.switch_page("pages/new.py", query_params=handed)
    opened = _open_screening(
        str(workbench.database),
        screening_id,
        screening_service(workbench).summary(screening_id).version,
    )
    screening = opened.screening
    head_facts = [
        count_noun(len(screening.rounds), "round"),
        f"{len(screening.kept)} of {count_noun(len(screening.grades), 'abstract')} kept",
        ", ".join(source.removeprefix("corpus:") for source in screening.retrievers),
        f"graded by {', '.join(screening.graders)}",
        moment(screening.started_at) + " UTC",
    ]
    show_head(
        screening.question,
        label(OUTCOME[screening.outcome]),
        reasons=screening.reasons,
        head_facts=head_facts,
    )
    _draw_concepts(screening)
    with st.container(horizontal=True, vertical_alignment="center"):
        _draw_hand_over(opened)
        with st.popover("Change the concepts", icon=":material/edit:"):
            _draw_concept_change(screening)
        with st.popover("Search further", icon=":material/travel_explore:"):
            _draw_search_further(screening)
        with st.popover("Export", icon=":material/download:"):
            _draw_screening_exports(workbench, opened)
        with st.popover("Import decisions", icon=":material/upload_file:"):
            _draw_label_import(screening)
        if words := agreement_words(screening.grades):
            st.text(words)
    show_problem(PROBLEM_KEY, st.error)
    # Each part has a container that always exists, so that the parts below stay in place.
    with st.container():
        if done := st.session_state.pop(_LABELS_DONE, ""):
            st.info(done, icon=":material/info:")
    with st.container():
        for warning in screening.warnings[:5]:
            st.warning(
                "A source or a grader failed. Its results are missing from the counts.",
                icon=":material/warning:",
            )
            st.text(warning)
        if missing := missing_abstracts_text(opened.abstracts.values()):
            st.warning(missing, icon=":material/short_text:")
    with st.container():
        _draw_findings(opened)
    st.html(with_selectors(_STYLE))
    with st.container(key="screening-flow"):
        _draw_criteria(screening)
        _draw_flow(opened)
    with st.container(key="screening-course"):
        _draw_rounds(screening)
    with st.container():
        _draw_abstracts(opened)
    if chosen := address.value("abstract"):
        grade = screening.grade(chosen)
        if grade is None:
            st.info(
                "The abstract in the address doesn't belong to this screening.",
                icon=":material/info:",
            )
            return
        with st.container(
            horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"
        ):
            st.header("Abstract", width="content")
            with st.container(horizontal=True, horizontal_alignment="right", width="content"):
                shown = [grade_shown.abstract_id for grade_shown in _shown_grades(opened)[0]]
                # Once decided, an abstract leaves the reading order; the first one left is next.
                draw_neighbor_buttons(shown if chosen in shown else [chosen, *shown], chosen)
        show_abstract(opened, grade)


# cache_resource, because cache_data would copy all abstracts on every run
@st.cache_resource(show_spinner=False, max_entries=16)
def _open_screening(database: str, screening_id: str, version: int) -> OpenedScreening:
    """Return the screening at this version, which increases with every override."""
    return screening_service(served_workbench()).open(screening_id)


def show_head(
    question: str, state: LabelData, *, reasons: Sequence[str] = (), head_facts: Sequence[str] = ()
) -> None:
    """Draw the question, the screening's state, and its reasons."""
    st.set_page_config(page_title=tab_title(state["text"], question))
    case_head(
        {"question": question, "state": state, "facts": list(head_facts)}, key="screening-head"
    )
    st.markdown("\n".join(f"- {escape_markdown(reason)}" for reason in reasons))


def agreement_words(grades: tuple[Grade, ...]) -> str:
    """Say how far graders agree on the recommendation; "" if no two scored the same abstract."""
    shares = [grade.agreement for grade in grades if grade.agreement is not None]
    if not shares:
        return ""
    graders = max(len(grade.opinions) for grade in grades)
    rated = [
        [
            RECOMMENDATIONS.index(opinion.recommendation)
            for opinion in grade.opinions
            if opinion.unscored is None
        ]
        for grade in grades
    ]
    patterns = Patterns.of(
        # The rows of an array are equally long; -1 marks a missing grade.
        np.array([row + [-1] * (graders - len(row)) for row in rated]),
        len(RECOMMENDATIONS),
    )
    value = float(krippendorff_alpha(patterns, np.bincount(patterns.member).astype(float)))
    # Alpha isn't defined if all grades are the same.
    alpha = "" if math.isnan(value) else f", Krippendorff's alpha {value:.2f}"
    agree = f"agree on {sum(shares) / len(shares):.0%} of {count_noun(len(shares), 'abstract')}"
    return f"{graders} graders {agree}{alpha}"


# The concepts of the screening, and a new screening with other ones


def _draw_concepts(screening: Screening) -> None:
    question = question_of(screening.question, screening.settings)
    used, written = concepts_as_text(question), read_question(question).written
    with st.container(key="screening-concepts-used", gap="small"):
        for cell, part in zip(st.columns(len(PARTS), gap="medium"), PARTS, strict=True):
            with cell, st.container(gap=None):
                st.caption(CONCEPT_NAMES[part] + (" · set by a person" if part in written else ""))
                st.markdown(escape_markdown(used[part]) if used[part] else "none")


def _draw_concept_change(screening: Screening) -> None:
    used = concepts_as_text(question_of(screening.question, screening.settings))
    for part in PARTS:
        st.text_input(
            CONCEPT_NAMES[part],
            used[part],
            # with the screening, so that another one doesn't show what was typed for this one
            key=f"again-{screening.id}-{part}",
            max_chars=LONGEST_CONCEPTS,
        )
    st.caption(CONCEPT_HINT)
    action("Screen again", "screen-again", "replay", _screen_again, screening.id, type="primary")
    st.caption(
        "This starts a new screening with the same question, sources and criteria. This one doesn't"
        " change."
    )


def _screen_again(screening_id: str) -> None:
    typed = {part: st.session_state.get(f"again-{screening_id}-{part}") for part in PARTS}
    concepts: dict[Part, str] = {part: str(text or "") for part, text in typed.items()}
    open_screening(
        attempt(lambda: ScreeningJobs(served_jobs()).screen_again(actor(), screening_id, concepts))
    )


# Actions: audit, further rounds, export


def _draw_hand_over(opened: OpenedScreening) -> None:
    kept_count = len(opened.screening.kept)
    if not kept_count:
        st.button(
            "Audit with these abstracts",
            disabled=True,
            help="No abstract is kept.",
            icon=":material/fact_check:",
        )
        return
    name_field("hand-over-name", placeholder="Your name", label_visibility="collapsed", width=220)
    action(
        f"Audit with {'this abstract' if kept_count == 1 else f'these {kept_count} abstracts'}",
        "hand-over",
        "fact_check",
        _hand_over_and_open,
        opened.screening.id,
        why=(
            "The kept abstracts become the evidence of a case; an answer is drafted from them and"
            " audited."
        ),
        type="primary",
    )


def _hand_over_and_open(screening_id: str) -> None:
    if not has_reviewer_name("hand-over-name"):
        st.session_state[PROBLEM_KEY] = "Type your name first. It is recorded with the case."
        return
    workbench = served_workbench()

    def hand_over() -> dict[str, str]:
        case: Case = screening_service(workbench).hand_over(actor(), screening_id)
        done = workbench.audits.newest_finished(case)
        return {"job": done.id if done else served_jobs().audit(actor(), case.id), "case": case.id}

    st.session_state["screening-handed"] = attempt(hand_over)


def _draw_search_further(screening: Screening) -> None:
    """Draw the request for further rounds, which become a new screening that continues this one."""
    missing = screening.rounds[-1].missing if screening.rounds else ()
    if missing:
        st.text("Still missing:\n" + "\n".join(f"• {point}" for point in missing))
    st.number_input("Further rounds, at most", 1, MOST_FURTHER, 2, key="further-rounds")
    action(
        "Search further",
        "search-further",
        "play_arrow",
        _search_further,
        screening.id,
        type="primary",
    )
    st.caption(
        "This starts a new screening that searches for what is missing, with these rounds and"
        " overrides. This one doesn't change. If no untried query is left, it ends at once."
    )


def _search_further(screening_id: str) -> None:
    rounds = int(st.session_state["further-rounds"])
    open_screening(
        attempt(lambda: ScreeningJobs(served_jobs()).search_further(actor(), screening_id, rounds))
    )


FILES: dict[ScreeningFile, tuple[str, str, str, str]] = {
    "csv": (
        "The screening log, CSV",
        ".csv",
        "table",
        "Every abstract with its grade, its reasons and its round.",
    ),
    "kept": (
        "The kept abstracts, RIS",
        ".ris",
        "library_books",
        "For a reference manager, with its grade as notes.",
    ),
    "labels": (
        "All abstracts with labels, RIS",
        "-labels.ris",
        "label",
        (
            "For ASReview, Rayyan or Covidence: people's decisions as labels, grades of a machine"
            " as suggestions. Their decisions come back as overrides."
        ),
    ),
    "flow": (
        "The flow diagram, SVG",
        "-flow.svg",
        "account_tree",
        "For a manuscript: dark on white, in any size.",
    ),
}
"""The files of a screening: button label, file ending, icon and purpose."""
MIME = {"csv": "text/csv", "ris": "application/x-research-info-systems", "svg": "image/svg+xml"}


def _draw_screening_exports(workbench: Workbench, opened: OpenedScreening) -> None:
    user, screening = actor(), opened.screening
    if not workbench.access.allows(user, "export"):
        st.caption("You need the lead role to export.")
        return
    number = {
        "csv": f" ({count_noun(len(screening.grades), 'abstract')})",
        "kept": f" ({len(screening.kept)})",
    }
    for form, (name, ending, icon, purpose) in FILES.items():
        st.download_button(
            f"{name}{number.get(form, '')}",
            # A function, so that the file is written when it's downloaded, not on every run.
            partial(screening_service(workbench).export, user, screening.id, form),
            file_name=f"screening-{screening.id[:8]}{ending}",
            mime=MIME[ending.rpartition(".")[2]],
            icon=f":material/{icon}:",
            disabled=form == "kept" and not screening.kept,
            on_click="ignore",
            width="stretch",
            help=purpose,
        )


LABEL_FORMATS = ["ris", "csv", "tsv", "txt", "xml"]
_LABELS_DONE = "screening-labels-done"
_EACH_DECISION = "As the file says for each record"


def _draw_label_import(screening: Screening) -> None:
    """Draw the request for decisions that people made in another tool."""
    key = f"screening-labels-{st.session_state.get('screening-label-imports', 0)}"
    st.caption("Exports of ASReview, Rayyan or Covidence, as RIS or CSV. Each becomes an override.")
    st.file_uploader("Files", type=LABEL_FORMATS, accept_multiple_files=True, key=key)
    st.selectbox(
        "Decision",
        [_EACH_DECISION, *RECOMMENDATION],
        key="screening-labels-as",
        format_func=lambda value: RECOMMENDATION[value].text if value in RECOMMENDATION else value,
        help="Covidence exports one list per decision. Choose the decision of the list.",
    )
    name_field("screening-labels-name")
    action(
        "Import decisions",
        "screening-label-import",
        "upload_file",
        _import_labels,
        screening.id,
        key,
    )


def _import_labels(screening_id: str, key: str) -> None:
    chosen = st.session_state["screening-labels-as"]
    has_reviewer_name("screening-labels-name")
    files = st.session_state[key]
    read = attempt(
        lambda: [record for file in files for record in read_abstracts(file, name=file.name)]
    )
    if not read:
        return
    records = [record for record in read if isinstance(record, Abstract)]
    done = attempt(
        lambda: screening_service(served_workbench()).import_labels(
            actor(), screening_id, records, every=None if chosen == _EACH_DECISION else chosen
        )
    )
    if done is not None:
        st.session_state[_LABELS_DONE] = (
            f"{count_noun(done.changed, 'grade')} changed, {done.unchanged} unchanged,"
            f" {done.undecided} without a decision, {done.unknown} not in the screening,"
            f" {len(read) - len(records)} unreadable."
        )
        st.session_state["screening-label-imports"] = (
            st.session_state.get("screening-label-imports", 0) + 1
        )


# Summary of findings

FINDING_COLUMNS = [
    column("Study and finding", "main"),
    column("Direction", "pills"),
    column("Design", hide="hide-narrow"),
    column("Quality", "figure"),
]


def _draw_findings(opened: OpenedScreening) -> None:
    """Draw the summary of findings, with one row per kept study."""
    synthesis = opened.synthesis
    st.header("Summary of findings")
    if not synthesis.findings:
        st.caption("Nothing is kept, so there is nothing to summarize.")
        return
    verdict = {True: "The kept studies agree.", False: "The kept studies conflict.", None: ""}[
        synthesis.agree
    ]
    st.markdown(f"{f'**{verdict}** ' if verdict else ''}{escape_markdown(synthesis.summary)}")
    rows = [finding_row(opened, finding) for finding in synthesis.findings]
    _draw_abstract_table(
        FINDING_COLUMNS, rows, "Findings of the kept studies", "screening-findings"
    )
    st.caption(
        "Best quality first. The direction is read from the sentence below each title. Check it"
        " before you rely on it, and open the study to correct it. Effects aren't pooled."
    )


def _draw_abstract_table(
    columns: Sequence[TableColumn], rows: Sequence[LinkedRow], description: str, key: str
) -> None:
    """Draw a table of abstracts; a clicked one is opened and scrolled into view."""
    clicked = linked_table(columns, rows, description=description, key=key)
    if clicked is not None and clicked != address.value("abstract"):
        address.set_param("abstract", clicked)
        st.session_state["screening-reveal"] = clicked
        st.rerun()


def finding_row(opened: OpenedScreening, finding: Finding) -> LinkedRow:
    """Return a row for one study, with the sentence that states its finding."""
    abstract = opened.abstracts.get(finding.abstract_id) or Abstract(id=finding.abstract_id)
    grade = opened.screening.grade(finding.abstract_id)
    sentence = finding.words.text if finding.words else "There is no text to read."
    counted = opened.abstracts.get(finding.repeats or "")
    repeats = [] if counted is None else [f"Counted once, with {study_name(counted)}"]
    word = DIRECTION[finding.direction]
    directions = [label(word._replace(text=f"{SIGN[finding.direction]} {word.text}"))]
    if grade is not None and grade.direction is not None:
        directions.append(label(OVERRIDDEN))
    return row(
        {
            "text": study_name(abstract),
            "href": link("screening", screening=opened.screening.id, abstract=finding.abstract_id),
            "open": finding.abstract_id,
            "quote": " ".join(sentence.split()),
            "below": repeats,
        },
        {"pills": directions},
        {
            "text": _design_text(grade),
            "below": [size_text(grade) or "size not reported"] if grade else [],
        },
        {"score": None if grade is None else grade.quality},
        open=finding.abstract_id,
    )


def study_name(abstract: Abstract) -> str:
    """Return ``Doe 2019: Aspirin for headache``, with the first author and year if known."""
    first = abstract.authors[0].split(",")[0].split(" ")[0] if abstract.authors else ""
    lead = " ".join(part for part in (first, str(abstract.year or "")) if part)
    title = (abstract.title or abstract.id)[:LONGEST_TITLE]
    return f"{lead}: {title}" if lead else title


def _design_text(grade: Grade | None) -> str:
    return DESIGN[grade.design] if grade and grade.design else "not recognized"


def direction_rows(opened: OpenedScreening) -> list[dict[str, Any]]:
    """Return the number of studies by design and direction, as rows of the plot."""
    grades = {grade.abstract_id: grade for grade in opened.screening.grades}
    counts = Counter(
        (DIRECTION[finding.direction].text, _design_text(grades.get(finding.abstract_id)))
        for finding in opened.synthesis.findings
        if finding.repeats is None
    )
    return [
        {"direction": where, "design": design, "studies": count}
        for (where, design), count in counts.items()
    ]


def _draw_criteria(screening: Screening) -> None:
    """Draw the criteria that the team wrote before screening, if any."""
    criteria = criteria_of(screening.settings)
    if not criteria:
        return
    with st.expander(f"Criteria of the team ({len(criteria)})", icon=":material/checklist:"):
        for kind in ("include", "exclude"):
            if chosen := [
                f"• {criterion.text}" for criterion in criteria if criterion.kind == kind
            ]:
                st.markdown(f"**{kind.capitalize()}**")
                st.text("\n".join(chosen))
        st.caption(
            "They are for people. Set an abstract to discard and choose a criterion as the reason;"
            " the flow then counts it."
        )


def _draw_flow(opened: OpenedScreening) -> None:
    """Draw the flow as a picture, beside the directions of the kept studies."""
    flow, plot = st.columns([58, 42], gap="large")
    with flow:
        st.header("Flow")
        # An image can't read the page's theme, so it is drawn in the colors of the theme in use.
        st.image(
            prisma_svg(opened.screening, DARK if st.context.theme.type == "dark" else PAGE),
            width="stretch",
            alt="Flow diagram: the table below has the same numbers",
        )
        with st.expander("The flow as a table"):
            st.table(flow_frame(opened.screening.flow), border="horizontal", alt="Flow")
    with plot:
        st.header("Direction of effect")
        if opened.synthesis.findings:
            draw_chart(
                direction_chart,
                rows=direction_rows(opened),
                description="Direction of effect by design",
            )
        else:
            st.caption("No abstract is kept, so there is no direction to count.")


# Rounds


def _draw_rounds(screening: Screening) -> None:
    """Draw the rounds beside the chart of their convergence."""
    left, right = st.columns([58, 42], gap="large")
    thresholds = screening.thresholds
    with left:
        st.header("Rounds")
        show_rounds(screening.rounds, thresholds.keep_share)
        if thresholds.adapted_by:
            changed = (
                "The acceptance memory changed the required average by"
                f" {thresholds.adapted_by:+.3f}"
            )
            st.caption(f"{changed}: {thresholds.adapted_why}")
    with right:
        st.header("Convergence")
        if len(screening.rounds) < 2:
            st.caption("The chart needs at least two rounds. Rounds shows the numbers of each.")
        else:
            rows = convergence_rows(screening.rounds, thresholds)
            draw_chart(convergence_chart, rows=rows, description="How the rounds converge")


def convergence_rows(rounds: Sequence[Round], thresholds: Thresholds) -> list[dict[str, Any]]:
    """Return average and share of keeps by round with their required values, as chart rows."""
    return [
        {"round": round_.number, "what": name, "value": value}
        for round_ in rounds
        for name, value in (
            (AVERAGE, round_.ruling.decisive_average),
            (REQUIRED, round_.ruling.required_average),
            (KEEP, round_.ruling.tally.keep_share),
            (NEEDED, thresholds.keep_share),
        )
        if value is not None
    ]


def show_rounds(rounds: Iterable[Round], keep_share: float, waiting: str = "") -> None:
    """Draw the rounds with their queries, votes, and whether both rules are satisfied."""
    for round_ in rounds:
        with st.container(border=True, gap="xsmall", key=f"screening-round-{round_.number}"):
            st.markdown(
                f"**Round {round_.number}** {badge(SUFFICIENCY[round_.ruling.decision])} "
                f"{len(round_.retrieved):,} found, {len(round_.new):,} graded for the first time"
            )
            for query in round_.queries:
                st.text(f"{query.text}\n{query.why}")
            st.markdown(f"{votes_text(round_)}; consensus needs {keep_share:.0%} keep")
            st.markdown(rules_text(round_))
            if round_.missing:
                st.text(f"Missing: {' '.join(round_.missing)}")
            for warning in round_.warnings:
                st.text(f"⚠ {warning}")
    if waiting:
        st.caption(escape_markdown(waiting))


# Table of abstracts

ABSTRACT_COLUMNS = [
    column("Abstract", "main"),
    column("Recommendation", "pills"),
    column("Study", hide="hide-narrow"),
    column("Relevance", "figure", hide="hide-medium"),
    column("Methodology", "figure", hide="hide-medium"),
    column("Quality", "figure"),
]


def select_grades(
    screening: Screening,
    shown: Sequence[Recommendation],
    order: Order,
    to_read: Sequence[str] = (),
) -> list[Grade]:
    """Return the grades with these recommendations (or all) in order, unscored ones last.

    ``to_read`` are the ids of the abstracts that nobody has decided on, for the order ``next``.
    """
    grades = [grade for grade in screening.grades if not shown or grade.recommendation in shown]
    if order == "next":
        by_id = {grade.abstract_id: grade for grade in grades}
        return [by_id[abstract_id] for abstract_id in to_read if abstract_id in by_id]

    def rank(grade: Grade) -> tuple[bool, float, str]:
        size = float(grade.study_size.value) if grade.study_size else None
        value = {"size": size, "quality": grade.quality}.get(order, grade.relevance_score)
        # The id makes the order of equal values the same on every run.
        return (value is None, -(value or 0.0), grade.abstract_id)

    return grades if order == "found" else sorted(grades, key=rank)


def count_recommendations(screening: Screening) -> Counter[Recommendation]:
    """Return how many abstracts have each recommendation."""
    return Counter(grade.recommendation for grade in screening.grades)


def abstract_row(
    screening: Screening, grade: Grade, abstract: Abstract | None, *, opened: str = ""
) -> LinkedRow:
    """Return a row for a graded abstract; ``abstract`` is None if only its record was removed."""
    number = next(
        (round_.number for round_ in screening.rounds if grade.abstract_id in round_.new), None
    )
    below = [
        *(facts(abstract) if abstract else ()),
        *([] if number is None else [f"round {number}"]),
    ]
    recommendation = [label(RECOMMENDATION[grade.recommendation])]
    if grade.overridden:
        recommendation.append(label(OVERRIDDEN))
    size = size_text(grade) or "sample size not reported"
    return row(
        {
            "text": (abstract.title if abstract else "") or grade.abstract_id,
            "href": link("screening", screening=screening.id, abstract=grade.abstract_id),
            "open": grade.abstract_id,
            "current": grade.abstract_id == opened,
            "below": ["  ·  ".join(below)],
        },
        {"pills": recommendation, "below": [rule_text(grade)]},
        {
            "text": _design_text(grade),
            "below": [f"{size}, too few" if grade.sample_size_adequate is False else size],
        },
        {"score": grade.relevance_score},
        {"score": grade.methodology_score},
        {"score": grade.quality},
        open=grade.abstract_id,
        marked=grade.abstract_id == opened,
    )


def _shown_in_address() -> tuple[list[Recommendation], Order]:
    """Return which abstracts the address shows, and in which order."""
    return address.several("show", RECOMMENDATIONS), address.one_of("order", ORDERS, "quality")


def _shown_grades(opened: OpenedScreening) -> tuple[list[Grade], ReadingOrder | None]:
    """Return the grades that the address shows, and the reading order if it asks for that."""
    shown, order = _shown_in_address()
    reading = opened.reading_order() if order == "next" else None
    to_read = () if reading is None else reading.ids
    return select_grades(opened.screening, shown, order, to_read), reading


def _draw_abstracts(opened: OpenedScreening) -> None:
    """Draw the table of graded abstracts with filter, order and pages."""
    screening = opened.screening
    st.header("Abstracts")
    if not screening.grades:
        st.markdown("**Nothing was found.** Use other words in the question, or other sources.")
        return
    shown, order = _shown_in_address()
    _draw_abstract_filters(screening, shown, order)
    grades, reading = _shown_grades(opened)
    if reading is not None:
        st.markdown(reading.summary)
    start = (address.number("page") - 1) * PAGE_SIZE
    chosen = address.value("abstract")
    rows = [
        abstract_row(screening, grade, opened.abstracts.get(grade.abstract_id), opened=chosen)
        for grade in grades[start : start + PAGE_SIZE]
    ]
    _draw_abstract_table(ABSTRACT_COLUMNS, rows, "Graded abstracts", "screening-table")
    if not rows:
        st.markdown("**No abstract has this recommendation.** Choose another one.")
    address.show_pages(len(grades), PAGE_SIZE, key="screening-page")


def _draw_abstract_filters(screening: Screening, shown: list[Recommendation], order: Order) -> None:
    numbers = count_recommendations(screening)
    with st.container(
        horizontal=True, horizontal_alignment="distribute", vertical_alignment="bottom"
    ):
        st.pills(
            "Recommendation",
            [recommendation for recommendation in RECOMMENDATIONS if numbers[recommendation]],
            selection_mode="multi",
            format_func=lambda recommendation: (
                f"{RECOMMENDATION[recommendation].text} {numbers[recommendation]}"
            ),
            **address.bind_query_param("show", shows=shown, key="screening-show"),
        )
        binding = address.bind_query_param("order", "quality", shows=order, key="screening-order")
        st.selectbox("Order", list(ORDERS), format_func=ORDERS.__getitem__, width=240, **binding)
