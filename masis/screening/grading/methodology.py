"""Scores how rigorous and openly reported a study is from the items that its abstract reports.

Items come from the reporting guidelines for abstracts: CONSORT for Abstracts (Hopewell et al.,
Lancet 2008;371:281) for trials, STROBE (von Elm et al., Lancet 2007;370:1453) for observational
studies, PRISMA for Abstracts (Beller et al., PLoS Med 2013;10:e1001419) for reviews, ARRIVE 2.0
(Percie du Sert et al., PLoS Biol 2020;18:e3000410) for animals. How much an item counts is ours:
twice for what guards against bias (randomisation, blinding, adjustment, the search of a review),
once or half for the rest.

    score = ceiling of the design
            x min(1, points reported / ``WHOLE`` of the points a design can have)

The ceiling says how far reporting alone can carry a design (GRADE: observational evidence starts
low, however well it is reported); the prior as a floor comes after, in
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

WHOLE = 0.8
"""The share of the points that counts as all: 250 words can't report everything."""

_TABLES = read_tables(Path(__file__).with_name("appraisal.toml"))
LABELS: dict[AppraisalItem, str] = {item: each["label"] for item, each in _TABLES["item"].items()}
_ITEMS: dict[AppraisalItem, Wording] = {
    item: Wording(joined_forms(each["wording"]), result=each.get("result", False))
    for item, each in _TABLES["item"].items()
    if "wording" in each
}
CEILING: dict[Design, float] = {
    design: most
    for each in _TABLES["checklist"].values()
    for design, most in each["ceilings"].items()
}
CHECKLIST: dict[Design, dict[AppraisalItem, float]] = {
    design: {item: float(points) for points, items in each["points"].items() for item in items}
    for each in _TABLES["checklist"].values()
    for design in each["ceilings"]
}
"""The points of each item, by design: what its reporting guideline asks for."""

ITEM_STATE_NAMES: dict[ItemState, str] = {
    "stated": "stated",
    "denied": "denied",
    "planned": "only planned",
    "not_stated": "not stated",
}


class ReadItem(NamedTuple):
    """An item of a design's checklist: its points, how the abstract speaks of it, and in which
    words.
    """

    item: AppraisalItem
    points: float
    state: ItemState
    words: tuple[AbstractWords, ...] = ()


class Methodology(NamedTuple):
    """A score before the prior's floor, None where there is no text, and why."""

    score: float | None
    reason: GradeReason


def methodology(abstract: Abstract, design: Design) -> Methodology:
    """Score what an abstract reports of its design's checklist."""
    if not abstract.text.strip():
        return Methodology(None, GradeReason(text="There is no abstract to read, only a title."))
    return score_items(design, appraise(abstract, design))


def appraise(abstract: Abstract, design: Design) -> tuple[ReadItem, ...]:
    """Return every item of the design's checklist as the abstract speaks of it; none where there is
    only a title.
    """
    if not abstract.text.strip():
        return ()
    return tuple(
        ReadItem(
            item,
            points,
            *(_size(abstract) if item == "size" else find_statement(_ITEMS[item], abstract)),
        )
        for item, points in CHECKLIST[design].items()
    )


def apply_corrections(
    items: Iterable[ReadItem], corrections: Mapping[AppraisalItem, ItemState]
) -> tuple[ReadItem, ...]:
    """Return the items with the states that a person set; what a person sets rests on no words of
    the machine's.
    """
    return tuple(
        (
            ReadItem(each.item, each.points, corrections[each.item])
            if corrections.get(each.item, each.state) != each.state
            else each
        )
        for each in items
    )


def score_items(design: Design, items: Sequence[ReadItem]) -> Methodology:
    """Score a design's checklist by the items that are stated."""
    checklist, ceiling = CHECKLIST[design], CEILING[design]
    stated = [each for each in items if each.state == "stated"]
    absent = sorted(
        (each.item for each in items if each.state != "stated"), key=lambda item: -checklist[item]
    )
    points = sum(each.points for each in stated)
    score = round(ceiling * min(1.0, points / (WHOLE * sum(each.points for each in items))), 4)
    says = ", ".join(LABELS[each.item] for each in stated) or "nothing of what its design calls for"
    text = (
        f"Reports {says} ({points:g} of {sum(checklist.values()):g} points, at most {ceiling:.2f}"
        " by design)."
    )
    if absent:
        text += f" Not reported: {', '.join(LABELS[item] for item in absent[:4])}."
    return Methodology(
        score, GradeReason(text=text, words=tuple(word for each in stated for word in each.words))
    )


def sentence_of(words: AbstractWords, abstract: Abstract) -> tuple[str, int]:
    """Return the sentence that holds these words, and where in it they begin; of a
    title all of it.
    """
    source = abstract.title if words.place == "title" else abstract.text
    if words.place == "title":
        return source, words.start
    for span in split_sentences(source):
        if span.start <= words.start < span.end:
            return source[span.start : max(span.end, words.end)], words.start - span.start
    return words.text, 0


def _size(abstract: Abstract) -> tuple[ItemState, tuple[AbstractWords, ...]]:
    """Return the words of the size that the study rests on, of the first one where it is a sum of
    several.
    """
    rests, sizes = study_size(abstract.text), sample_sizes(abstract.text)
    stated = [size for size in sizes if rests is not None and size.value == rests.value] or sizes
    words = (
        AbstractWords(start=each.start, end=each.end, text=abstract.text[each.start : each.end])
        for each in stated[:1]
    )
    return ("stated" if stated else "not_stated"), tuple(words)
