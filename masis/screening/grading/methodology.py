"""Scores how rigorous and openly reported a study is from the items that its abstract reports.

Items come from the reporting guidelines for abstracts: CONSORT for Abstracts (Hopewell et al.,
Lancet 2008;371:281) for trials, STROBE (von Elm et al., Lancet 2007;370:1453) for observational
studies, PRISMA for Abstracts (Beller et al., PLoS Med 2013;10:e1001419) for reviews, ARRIVE 2.0
(Percie du Sert et al., PLoS Biol 2020;18:e3000410) for animals. The points of an item are our own:
two for protection against bias (randomization, blinding, adjustment, the search of a review), one
or a half for the rest.

    score = ceiling of the design
            x min(1, points reported / ``FULL_POINTS_SHARE`` of the points a design can have)

The ceiling limits the score that a design can reach by good reporting (GRADE: observational
evidence starts low, even if it is well reported). The prior is applied as a floor afterwards, in
``recommendation.with_prior_floor``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from masis.audit.sentences import split_sentences
from masis.schema.screening import (
    Abstract,
    AbstractWords,
    AppraisalItem,
    Design,
    GradeReason,
    ItemState,
)
from masis.screening.grading.sample_size import sample_sizes, study_size
from masis.screening.grading.wording import Wording, find_statement, joined_forms, read_tables

FULL_POINTS_SHARE = 0.8
"""The share of the points that counts as all, because 250 words can't report everything."""

_TABLES = read_tables(Path(__file__).with_name("appraisal.toml"))
LABELS: dict[AppraisalItem, str] = {item: entry["label"] for item, entry in _TABLES["item"].items()}
_ITEMS: dict[AppraisalItem, Wording] = {
    item: Wording(joined_forms(entry["wording"]), result=entry.get("result", False))
    for item, entry in _TABLES["item"].items()
    if "wording" in entry
}
CEILING: dict[Design, float] = {
    design: most
    for checklist in _TABLES["checklist"].values()
    for design, most in checklist["ceilings"].items()
}
CHECKLIST: dict[Design, dict[AppraisalItem, float]] = {
    design: {item: float(points) for points, items in checklist["points"].items() for item in items}
    for checklist in _TABLES["checklist"].values()
    for design in checklist["ceilings"]
}
"""The points of each item in the reporting guideline of a design."""

ITEM_STATE_NAMES: dict[ItemState, str] = {
    "stated": "stated",
    "denied": "denied",
    "planned": "only planned",
    "not_stated": "not stated",
}


class AppraisedItem(NamedTuple):
    """An item of a design's checklist: its points, its state in the abstract, and the words."""

    item: AppraisalItem
    points: float
    state: ItemState
    words: tuple[AbstractWords, ...] = ()


class Methodology(NamedTuple):
    """A score before the prior's floor (None without a text), and the reason."""

    score: float | None
    reason: GradeReason


def methodology(abstract: Abstract, design: Design) -> Methodology:
    """Score the items of its design's checklist that an abstract reports."""
    if not abstract.text.strip():
        return Methodology(None, GradeReason(text="The record has only a title, no abstract."))
    return score_items(design, appraise(abstract, design))


def appraise(abstract: Abstract, design: Design) -> tuple[AppraisedItem, ...]:
    """Return every item of the design's checklist with its state; none if there is only a title."""
    if not abstract.text.strip():
        return ()
    return tuple(
        AppraisedItem(
            item,
            points,
            *(_size(abstract) if item == "size" else find_statement(_ITEMS[item], abstract)),
        )
        for item, points in CHECKLIST[design].items()
    )


def apply_corrections(
    items: Iterable[AppraisedItem], corrections: Mapping[AppraisalItem, ItemState]
) -> tuple[AppraisedItem, ...]:
    """Return the items with the states that a person set.

    A corrected item has no words, because the words that were found support the old state.
    """
    return tuple(
        (
            AppraisedItem(item.item, item.points, corrections[item.item])
            if corrections.get(item.item, item.state) != item.state
            else item
        )
        for item in items
    )


def score_items(design: Design, items: Sequence[AppraisedItem]) -> Methodology:
    """Score a design's checklist by the items that are stated."""
    checklist, ceiling = CHECKLIST[design], CEILING[design]
    stated = [item for item in items if item.state == "stated"]
    absent = sorted(
        (item.item for item in items if item.state != "stated"), key=lambda item: -checklist[item]
    )
    points = sum(item.points for item in stated)
    score = round(
        ceiling * min(1.0, points / (FULL_POINTS_SHARE * sum(item.points for item in items))), 4
    )
    stated_labels = (
        ", ".join(LABELS[item.item] for item in stated) or "no item of its design's checklist"
    )
    text = (
        f"Reports {stated_labels} ({points:g} of {sum(checklist.values()):g} points, at most"
        f" {ceiling:.2f} by design)."
    )
    if absent:
        text += f" Not reported: {', '.join(LABELS[item] for item in absent[:4])}."
    return Methodology(
        score, GradeReason(text=text, words=tuple(word for item in stated for word in item.words))
    )


def sentence_of(words: AbstractWords, abstract: Abstract) -> tuple[str, int]:
    """Return the sentence (or title) with these words, and the words' offset in it."""
    source = abstract.title if words.place == "title" else abstract.text
    if words.place == "title":
        return source, words.start
    for span in split_sentences(source):
        if span.start <= words.start < span.end:
            return source[span.start : max(span.end, words.end)], words.start - span.start
    return words.text, 0


def _size(abstract: Abstract) -> tuple[ItemState, tuple[AbstractWords, ...]]:
    """Return whether a size is stated, and its words; the first part's words if it is a sum."""
    study_size_, sizes = study_size(abstract.text), sample_sizes(abstract.text)
    stated = [
        size for size in sizes if study_size_ is not None and size.value == study_size_.value
    ] or sizes
    words = (
        AbstractWords(start=size.start, end=size.end, text=abstract.text[size.start : size.end])
        for size in stated[:1]
    )
    return ("stated" if stated else "not_stated"), tuple(words)
