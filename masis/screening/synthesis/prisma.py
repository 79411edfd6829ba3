"""The flow diagram of a screening, as in PRISMA 2020 (Page et al., BMJ 2021;372:n71, figure 1).

It is called PRISMA only once each record is excluded or kept, because PRISMA has no box for open
decisions. Only titles and abstracts are screened, so the boxes for full reports are left out, and
undecided abstracts have a box of their own. The team's inclusion and exclusion criteria are listed
as reasons. People judge by them, and the graders don't read them.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple
from xml.sax.saxutils import escape, quoteattr

from masis.schema.screening import Exclusion, Flow, Grade, Round, Screening
from masis.screening.views.words import rule_text

MOST_CRITERIA, LONGEST_CRITERION = 40, 300


class Criterion(NamedTuple):
    """One inclusion or exclusion criterion of the team."""

    kind: Literal["include", "exclude"]
    text: str

    @property
    def reason(self) -> str:
        """The criterion as a reason for exclusion."""
        return self.text if self.kind == "exclude" else f"not: {self.text}"


def read_criteria(written: str) -> tuple[Criterion, ...]:
    """Parse criteria, one per line: ``include: adults``, ``exclude: no control group``.

    A line without a label is an exclusion criterion.
    """
    criteria = []
    for line in written.splitlines()[:MOST_CRITERIA]:
        head, _, rest = line.partition(":")
        label = head.strip().lower()
        kind: Literal["include", "exclude"] = "include" if label == "include" else "exclude"
        text = " ".join((rest if label in ("include", "exclude") else line).split())[
            :LONGEST_CRITERION
        ]
        if text:
            criteria.append(Criterion(kind, text))
    return tuple(dict.fromkeys(criteria))


def criteria_of(settings: dict[str, object]) -> tuple[Criterion, ...]:
    """Return the criteria in a screening's stored settings."""
    return read_criteria(str(settings.get("screening_criteria") or ""))


def flow(
    rounds: Iterable[Round], grades: Iterable[Grade], criteria: Sequence[Criterion] = ()
) -> Flow:
    """Count the abstracts at each step; ``grades`` holds the latest grade of each abstract.

    An abstract that a person discarded for one of the team's ``criteria`` is counted under that
    criterion. A record that another search had found before counts as identified and as duplicate.
    """
    latest = tuple(grades)
    finished_rounds = tuple(rounds)
    found = max(sum(finished.identified for finished in finished_rounds), len(latest))
    unread = sum(finished.unread for finished in finished_rounds)
    excluded = Counter(
        (grade.rule, _exclusion_reason(grade, criteria))
        for grade in latest
        if grade.recommendation == "discard"
    )
    return Flow(
        identified=found + unread,
        duplicates=found - len(latest),
        unread=unread,
        screened=len(latest),
        excluded=tuple(
            Exclusion(rule=rule, label=label, count=count)
            for (rule, label), count in sorted(
                excluded.items(), key=lambda entry: (-entry[1], entry[0])
            )
        ),
        undecided=sum(grade.recommendation == "needs_more" for grade in latest),
        unscored=sum(grade.unscored is not None for grade in latest),
        kept=sum(grade.recommendation == "keep" for grade in latest),
    )


def _exclusion_reason(grade: Grade, criteria: Sequence[Criterion]) -> str:
    """Return the criterion that a person discarded the abstract for, or the text of the rule."""
    reason_ = grade.reasons.get("recommendation")
    by_person = reason_.given if grade.rule == "person" and reason_ is not None else ""
    matches = (criterion.reason for criterion in criteria if by_person == criterion.reason)
    return next(matches, rule_text(grade))


# The diagram. All text is escaped. The palette is an argument, so that the page can draw a light
# and a dark version, and a download is always dark on white.

WIDTH = 760
# Pixels: the widths of the main and the side boxes, their left edges and the top of the first.
_BOX, _SIDE, _LEFT, _RIGHT, _TOP = 300, 340, 44, 410, 44
# Pixels: the height of a line, the padding of a box, the gap between rows, the least row height.
_LINE, _PAD, _GAP, _LEAST = 18, 12, 22, 84
# Characters per line and per text. SVG doesn't wrap text, so it is wrapped here.
_WRAP, _LONGEST = 38, 300
_MOST_REASONS = 12


class Palette(NamedTuple):
    """The colours of a diagram."""

    background: str
    box: str
    line: str
    text: str
    stage: str


LIGHT = Palette("#ffffff", "#f6f8fa", "#57606a", "#1f2328", "#d0e3f7")
PAGE = LIGHT._replace(background="none")
DARK = Palette("none", "#1c2128", "#8b949e", "#e6edf3", "#1d3a57")


def prisma_svg(screening: Screening, palette: Palette = LIGHT) -> str:
    """Return the diagram of a screening as an SVG document, with the counts of its ``flow``."""
    flow = screening.flow
    sources = ", ".join(name.removeprefix("corpus:") for name in screening.retrievers)
    excluded = [(exclusion.label, exclusion.count) for exclusion in flow.excluded]
    excluded_count = sum(count for _, count in excluded)
    if len(excluded) > _MOST_REASONS:
        rest = sum(count for _, count in excluded[_MOST_REASONS - 1 :])
        excluded = [*excluded[: _MOST_REASONS - 1], ("other reasons", rest)]
    undecided = [
        ("need more evidence", flow.undecided - flow.unscored),
        ("couldn't be graded", flow.unscored),
    ]
    duplicates_label, outcome_label = (
        "Duplicates removed",
        f"Outcome: {screening.outcome.replace('_', ' ')}",
    )
    rows: tuple[tuple[list[str], list[str]], ...] = (
        (
            _box("Records identified", flow.identified, f"Sources: {sources}"),
            [
                *_box(duplicates_label, flow.duplicates),
                *(_box("Records that couldn't be read", flow.unread) if flow.unread else ()),
            ],
        ),
        (
            _box("Records screened", flow.screened, "Titles and abstracts"),
            _box("Excluded", excluded_count, *_count_reasons(excluded)),
        ),
        (
            _box("Not excluded", flow.kept + flow.undecided),
            _box("Undecided", flow.undecided, *_count_reasons(undecided)),
        ),
        (_box("Abstracts kept", flow.kept, outcome_label), []),
    )
    parts: list[str] = []
    y, edges = _TOP, [_TOP]
    for number, (main, side) in enumerate(rows):
        height = max(_LEAST, _height(main), _height(side))
        parts += _draw_box(main, _LEFT, y, _BOX, palette)
        if side:
            middle = y + min(_height(main), _height(side)) // 2
            parts += _draw_box(side, _RIGHT, y, _SIDE, palette)
            parts.append(_arrow(_LEFT + _BOX, middle, _RIGHT, middle, palette))
        if number + 1 < len(rows):
            parts.append(
                _arrow(
                    _LEFT + _BOX // 2,
                    y + _height(main),
                    _LEFT + _BOX // 2,
                    y + height + _GAP,
                    palette,
                )
            )
        y += height + _GAP
        edges.append(y)
    for name, first, last in (("Identification", 0, 1), ("Screening", 1, 3), ("Included", 3, 4)):
        top, bottom = edges[first], edges[last] - _GAP
        parts.append(
            f'<rect x="8" y="{top}" width="26" height="{bottom - top}" rx="4"'
            f' fill="{palette.stage}"/><text transform="translate(25 {(top + bottom) // 2})'
            ' rotate(-90)" text-anchor="middle" font-size="11"'
            f' fill="{palette.text}">{_xml_text(name)}</text>'
        )
    name = "PRISMA 2020 flow" if flow.is_prisma else "Flow"
    title = _xml_line(f"{name} of the screening: {screening.question}")[:_LONGEST]
    head = textwrap.shorten(_xml_line(screening.question), 95, placeholder=" ...")
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" width="{WIDTH}"'
        f' height="{y}" font-family="Helvetica, Arial, sans-serif" font-size="13" role="img"'
        f" aria-label={quoteattr(title)}>"
    )
    marker = (
        '<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7"'
        ' markerHeight="7" orient="auto"><path d="M 0 0 L 10 5 L 0 10 z"'
        f' fill="{palette.line}"/></marker></defs>'
    )
    background = f'<rect width="{WIDTH}" height="{y}" fill="{palette.background}"/>'
    heading = (
        f'<text x="{_LEFT}" y="26" font-weight="bold" fill="{palette.text}">'
        f"{_xml_text(head)}</text>"
    )
    return "\n".join(
        [
            opening,
            f"<title>{_xml_text(title)}</title>",
            marker,
            background,
            heading,
            *parts,
            "</svg>",
        ]
    )


def _box(name: str, count: int, *below: str) -> list[str]:
    """Return the lines of a box: its name, its count and the lines below."""
    wrapped = (
        textwrap.wrap(_xml_line(text)[:_LONGEST], _WRAP, subsequent_indent="   ") for text in below
    )
    return [f"{name} (n = {count:,})", *(line for lines in wrapped for line in lines)]


def _count_reasons(reasons: Iterable[tuple[str, int]]) -> list[str]:
    return [f"{label[: _LONGEST // 2]} (n = {count:,})" for label, count in reasons if count]


def _height(lines: Sequence[str]) -> int:
    return len(lines) * _LINE + 2 * _PAD


def _draw_box(lines: Sequence[str], x: int, y: int, width: int, palette: Palette) -> list[str]:
    outline = f'x="{x}" y="{y}" width="{width}" height="{_height(lines)}" rx="4"'
    parts = [f'<rect {outline} fill="{palette.box}" stroke="{palette.line}"/>']
    for number, line in enumerate(lines):
        weight = ' font-weight="bold"' if number == 0 else ""
        baseline = y + _PAD + 13 + number * _LINE
        parts.append(
            f'<text x="{x + _PAD}" y="{baseline}"{weight} '
            f'fill="{palette.text}">'
            f"{_xml_text(line)}</text>"
        )
    return parts


def _arrow(x1: int, y1: int, x2: int, y2: int, palette: Palette) -> str:
    return (
        f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{palette.line}"'
        ' marker-end="url(#head)"/>'
    )


def _xml_line(text: str) -> str:
    """Return the text on one line, without control characters, which XML doesn't allow."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _xml_text(text: str) -> str:
    return escape(_xml_line(text))
