"""Groups of free notes: how far they agree with failure modes, their names, and what is left out."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from benchmarks.grouping_notes import NOTES, encode, measure, measure_nearest
from masis.services.modes.grouping import PatternGroup, PatternText, group_patterns


def groups_of(texts: Sequence[str]) -> list[PatternGroup]:
    return group_patterns([PatternText(n, text, 1) for n, text in enumerate(texts)], encode)


@pytest.mark.parametrize("name", ["tuned", "held_out"])
def test_groups_of_free_notes_agree_with_the_modes_they_were_written_for(name: str) -> None:
    found = measure(NOTES / f"{name}.txt")
    assert found.rand > 0.55
    assert found.pure > 0.55
    assert found.noise < 0.3
    assert len(found.groups) < 10


@pytest.mark.parametrize("name", ["tuned", "held_out"])
def test_most_of_the_notes_ranked_nearest_name_the_same_fault(name: str) -> None:
    assert measure_nearest(NOTES / f"{name}.txt") > 0.6


def test_the_kind_of_fault_joins_notes_about_different_subjects_and_titles_the_group() -> None:
    subjects = ("the tariff of the museum", "the visa rules", "the vaccine schedule", "the menu")
    faults = {
        "Outdated": "{} is out of date, a newer version replaced it",
        "Wrong citation": "the citation for {} points to an unrelated document",
    }
    groups = groups_of([fault.format(s) for s in subjects for fault in faults.values()])
    assert sorted(group.title for group in groups) == sorted(faults)
    assert [len(group.patterns) for group in groups] == [4, 4]


def test_remarks_that_name_no_fault_are_in_no_group() -> None:
    assert not groups_of(["ask petra on monday", "lunch", "back tomorrow", "thanks", "ok", "hm"])


def test_words_that_several_notes_share_name_a_group_and_contractions_dont() -> None:
    [group] = groups_of(
        [
            "alpha isn t what the footnote of the paragraph says",
            "beta the footnote doesn t belong to this paragraph",
            "gamma wrong footnote in this paragraph",
        ]
    )
    assert group.name.startswith(("footnote, paragraph", "paragraph, footnote"))
    assert not {"isn", "doesn"} & set(group.name.split(", "))


def test_a_frequent_text_is_the_typical_one_and_names_its_group() -> None:
    texts = [PatternText(0, "contradicted by the leaflet", 200)]
    texts += [
        PatternText(n, note, 1)
        for n, note in enumerate(
            ("flatly contradicts", "flat contradiction", "flatly contradicted"), 1
        )
    ]
    group = next(group for group in group_patterns(texts, encode) if 0 in group.patterns)
    assert len(group.patterns) > 1
    assert group.patterns[0] == 0
    assert "flatly" not in group.name.split(", ")
