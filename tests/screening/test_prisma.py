"""The PRISMA flow diagram, and the team's criteria as its exclusion reasons."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from masis.observers.observation import run_to_completion
from masis.schema.screening import Override, Screening
from masis.screening.rounds.overrides import apply_review
from masis.screening.rounds.round_loop import screen
from masis.screening.synthesis.prisma import DARK, Criterion, prisma_svg, read_criteria
from masis.settings import Settings
from tests.screening.scripted import OFF_TOPIC, STRONG, ScriptedGrader, ScriptedSource, abstracts

SVG = "{http://www.w3.org/2000/svg}"
CRITERIA = "include: adults\nexclude: no control group\n\nanimals & <b>cells</b>"


def run_screening(question: str = "Does aspirin help against headache?") -> Screening:
    opinions = {"a": STRONG, "b": STRONG, "c": STRONG, "d": OFF_TOPIC}
    source = ScriptedSource(abstracts("a", "b", "c", "d"), name="corpus:<mine> & yours")
    settings = Settings(screening_criteria=CRITERIA)
    return run_to_completion(
        screen(question, [source], ScriptedGrader(opinions), settings, screening_id="s")
    )


def svg_text(svg: str) -> str:
    return "\n".join(
        "".join(element.itertext()) for element in ElementTree.fromstring(svg).iter(f"{SVG}text")
    )


def test_the_diagram_shows_every_count_of_the_flow() -> None:
    screening = run_screening()
    text = svg_text(prisma_svg(screening))
    assert "Records identified (n = 4)" in text
    assert "Duplicates removed (n = 0)" in text
    assert "Records screened (n = 4)" in text
    assert "Excluded (n = 1)" in text
    assert "about something else (n = 1)" in text
    assert "Abstracts kept (n = 3)" in text
    assert "Outcome: sufficient" in text


@pytest.mark.parametrize(
    "hostile",
    [
        "</text><script>alert(1)</script>",
        '"><svg onload=alert(1)>',
        "a & b < c > d",
        "nul\x01 bell\x07 control",
        "two\nlines\tand a tab",
        "]]> <!-- comment -->",
    ],
)
def test_untrusted_text_is_escaped(hostile: str) -> None:
    svg = prisma_svg(run_screening(hostile))
    root = ElementTree.fromstring(svg)
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= {
        *("svg", "title", "defs", "marker", "path", "rect", "text", "line")
    }
    assert not any(name.startswith("on") for element in root.iter() for name in element.attrib)
    assert "<mine> & yours" in svg_text(svg)


def test_the_diagram_has_a_dark_theme() -> None:
    assert DARK.text in prisma_svg(run_screening(), DARK)


def test_long_reasons_stay_inside_their_box() -> None:
    screening = run_screening()
    long_exclusion = screening.flow.excluded[0].model_copy(
        update={"label": "a very long reason " * 30}
    )
    crowded_flow = screening.flow.model_copy(update={"excluded": (long_exclusion,) * 40})
    lines = svg_text(prisma_svg(screening.model_copy(update={"flow": crowded_flow}))).splitlines()
    assert max(map(len, lines)) < 100
    assert any("other reasons" in line for line in lines)


def test_criteria_are_one_per_line_and_exclude_by_default() -> None:
    assert read_criteria(CRITERIA) == (
        Criterion("include", "adults"),
        Criterion("exclude", "no control group"),
        Criterion("exclude", "animals & <b>cells</b>"),
    )
    assert [
        criterion.reason for criterion in read_criteria("Include: adults\nweight: unknown")
    ] == [
        "not: adults",
        "weight: unknown",
    ]
    assert read_criteria(" \n\n") == ()


def test_an_abstract_discarded_for_a_criterion_is_counted_under_it() -> None:
    original = run_screening()
    discarded = [
        Override(
            abstract_id=abstract_id,
            field="recommendation",
            value="discard",
            reason=reason,
            reviewer="Ada",
            at="",
        )
        for abstract_id, reason in (
            ("a", "no control group"),
            ("b", "not: adults"),
            ("c", "I doubt this: no control group"),
        )
    ]
    excluded = apply_review(original, discarded).flow.excluded
    reasons = {exclusion.label: exclusion.count for exclusion in excluded}
    assert reasons == {
        "no control group": 1,
        "not: adults": 1,
        "a person's decision": 1,
        "about something else": 1,
    }
    assert "no control group (n = 1)" in svg_text(prisma_svg(apply_review(original, discarded)))


@pytest.mark.spec("AESOP-FLOW")
def test_records_that_cannot_be_read_stay_in_the_counts() -> None:
    source = ScriptedSource(abstracts("a", "b"))
    graders = ScriptedGrader({"a": STRONG, "b": OFF_TOPIC})
    screening = run_to_completion(
        screen("Does it help?", [source], graders, Settings(), screening_id="s", unread=3)
    )
    flow = screening.flow
    assert (flow.unread, flow.screened) == (3, 2)
    assert flow.identified == flow.duplicates + flow.unread + flow.screened
    assert apply_review(screening, []).flow == flow
    assert "Records that couldn't be read (n = 3)" in svg_text(prisma_svg(screening))


@pytest.mark.spec("AESOP-FLOW")
def test_the_diagram_is_called_prisma_only_if_no_record_is_undecided() -> None:
    screening = run_screening()
    assert "PRISMA 2020 flow of the screening" in prisma_svg(screening)
    undecided = screening.flow.model_copy(update={"undecided": 1, "kept": 2})
    svg = prisma_svg(screening.model_copy(update={"flow": undecided}))
    assert "Flow of the screening" in svg
    assert "PRISMA" not in svg
