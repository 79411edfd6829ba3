"""The PRISMA 2020 flow diagram of a screening as SVG (Page et al., BMJ 2021;372:n71, figure 1).

Titles and abstracts are all that is screened here, so the boxes for full reports are left out, and what asks for more
evidence has a box of its own. Text is escaped; colours are given by name, so that the page draws it light or dark and a
download is always dark on white.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

from masis.schema.screening import Screening

WIDTH = 760
_BOX, _SIDE, _LEFT, _RIGHT, _TOP = 300, 340, 44, 410, 44
_LINE, _PAD, _GAP, _LEAST = 18, 12, 22, 84
_WRAP_BOX, _WRAP_SIDE = 34, 40
_LONGEST = 300
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
    """Return the diagram of a screening as an SVG document; the counts are those of ``screening.flow``."""
    flow, sources = screening.flow, [name.removeprefix("corpus:") for name in screening.retrievers]
    excluded = [(each.label, each.count) for each in flow.excluded]
    out = sum(count for _, count in excluded)
    if len(excluded) > _MOST_REASONS:
        rest = sum(count for _, count in excluded[_MOST_REASONS - 1 :])
        excluded = [*excluded[: _MOST_REASONS - 1], ("other reasons", rest)]
    undecided = [("ask for more evidence", flow.undecided - flow.unscored), ("could not be graded", flow.unscored)]
    outcome = f"Outcome: {screening.outcome.replace('_', ' ')}"
    rows: tuple[tuple[str, list[str], list[str]], ...] = (
        (
            "Identification",
            _box(f"Records identified (n = {flow.identified:,})", f"Sources: {', '.join(sources)}"),
            _side("Duplicates removed", flow.duplicates, []),
        ),
        (
            "Screening",
            _box(f"Records screened (n = {flow.screened:,})", "Titles and abstracts"),
            _side("Excluded", out, excluded),
        ),
        (
            "Screening",
            _box(f"Not excluded (n = {flow.kept + flow.undecided:,})", ""),
            _side("Undecided", flow.undecided, [each for each in undecided if each[1]]),
        ),
        ("Included", _box(f"Abstracts kept (n = {flow.kept:,})", outcome), []),
    )
    parts: list[str] = []
    stages: dict[str, tuple[int, int]] = {}
    y = _TOP
    for number, (stage, main, side) in enumerate(rows):
        height = max(_LEAST, _height(main), _height(side))
        parts += _drawn(main, _LEFT, y, _BOX, palette)
        if side:
            middle = y + min(_height(main), _height(side)) // 2
            parts += _drawn(side, _RIGHT, y, _SIDE, palette)
            parts.append(_arrow(_LEFT + _BOX, middle, _RIGHT, middle, palette))
        stages[stage] = stages.get(stage, (y, 0))[0], y + height
        if number + 1 < len(rows):
            parts.append(_arrow(_LEFT + _BOX // 2, y + _height(main), _LEFT + _BOX // 2, y + height + _GAP, palette))
        y += height + _GAP
    for name, (top, bottom) in stages.items():
        parts.append(
            f'<rect x="8" y="{top}" width="26" height="{bottom - top}" rx="4" fill="{palette.stage}"/>'
            f'<text transform="translate(25 {(top + bottom) // 2}) rotate(-90)" text-anchor="middle" font-size="11" '
            f'fill="{palette.text}">{_text(name)}</text>'
        )
    title = _plain(f"PRISMA 2020 flow of the screening: {screening.question}")[:_LONGEST]
    head = textwrap.shorten(_plain(screening.question), 95, placeholder=" ...")
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" width="{WIDTH}" height="{y}" '
        f'font-family="Helvetica, Arial, sans-serif" font-size="13" role="img" aria-label={quoteattr(title)}>'
    )
    marker = (
        '<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M 0 0 L 10 5 L 0 10 z" fill="{palette.line}"/></marker></defs>'
    )
    background = f'<rect width="{WIDTH}" height="{y}" fill="{palette.background}"/>'
    heading = f'<text x="{_LEFT}" y="26" font-weight="bold" fill="{palette.text}">{_text(head)}</text>'
    return "\n".join([opening, f"<title>{_text(title)}</title>", marker, background, heading, *parts, "</svg>"])


def _box(head: str, below: str) -> list[str]:
    return [head, *textwrap.wrap(_plain(below)[:_LONGEST], _WRAP_BOX)]


def _side(name: str, count: int, reasons: Sequence[tuple[str, int]]) -> list[str]:
    lines = [f"{name} (n = {count:,})"]
    for label, times in reasons:
        lines += textwrap.wrap(f"{_plain(label)[:_LONGEST]} (n = {times:,})", _WRAP_SIDE, subsequent_indent="   ")
    return lines


def _height(lines: Sequence[str]) -> int:
    return len(lines) * _LINE + 2 * _PAD


def _drawn(lines: Sequence[str], x: int, y: int, width: int, palette: Palette) -> list[str]:
    outline = f'x="{x}" y="{y}" width="{width}" height="{_height(lines)}" rx="4"'
    parts = [f'<rect {outline} fill="{palette.box}" stroke="{palette.line}"/>']
    for number, line in enumerate(lines):
        weight = ' font-weight="bold"' if number == 0 else ""
        place = y + _PAD + 13 + number * _LINE
        parts.append(f'<text x="{x + _PAD}" y="{place}"{weight} fill="{palette.text}">{_text(line)}</text>')
    return parts


def _arrow(x1: int, y1: int, x2: int, y2: int, palette: Palette) -> str:
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{palette.line}" marker-end="url(#head)"/>'


def _plain(text: str) -> str:
    """Return the text on one line, without the characters that XML can't hold."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _text(text: str) -> str:
    return escape(_plain(text))
