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
from tests.screening.scripted import AWAY, STRONG, ScriptedGrader, ScriptedSource, abstracts

SVG = "{http://www.w3.org/2000/svg}"
CRITERIA = "include: adults\nexclude: no control group\n\nanimals & <b>cells</b>"


def screened(question: str = "Does aspirin help against headache?") -> Screening:
    says = {"a": STRONG, "b": STRONG, "c": STRONG, "d": AWAY}
    source = ScriptedSource(abstracts("a", "b", "c", "d"), name="corpus:<mine> & yours")
    settings = Settings(screening_criteria=CRITERIA)
    return run_to_completion(
        screen(question, [source], ScriptedGrader(says), settings, screening_id="s")
    )


def words(svg: str) -> str:
    return "\n".join(
        "".join(each.itertext()) for each in ElementTree.fromstring(svg).iter(f"{SVG}text")
    )


def test_the_diagram_shows_every_count_of_the_flow() -> None:
    found = screened()
    shown = words(prisma_svg(found))
    assert "Records identified (n = 4)" in shown
    assert "Duplicates removed (n = 0)" in shown
    assert "Records screened (n = 4)" in shown
    assert "Excluded (n = 1)" in shown
    assert "about something else (n = 1)" in shown
    assert "Abstracts kept (n = 3)" in shown
    assert "Outcome: sufficient" in shown


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
def test_outside_text_stays_text(hostile: str) -> None:
    svg = prisma_svg(screened(hostile))
    root = ElementTree.fromstring(svg)
    assert {each.tag.removeprefix(SVG) for each in root.iter()} <= {
        *("svg", "title", "defs", "marker", "path", "rect", "text", "line")
    }
    assert not any(name.startswith("on") for each in root.iter() for name in each.attrib)
    assert "<mine> & yours" in words(svg)


def test_the_diagram_has_a_dark_theme() -> None:
    assert DARK.text in prisma_svg(screened(), DARK)


def test_long_reasons_stay_inside_their_box() -> None:
    found = screened()
    long = found.flow.excluded[0].model_copy(update={"label": "a very long reason " * 30})
    many = found.flow.model_copy(update={"excluded": (long,) * 40})
    lines = words(prisma_svg(found.model_copy(update={"flow": many}))).splitlines()
    assert max(map(len, lines)) < 100
    assert any("other reasons" in line for line in lines)


def test_criteria_are_one_per_line_and_exclude_by_default() -> None:
    assert read_criteria(CRITERIA) == (
        Criterion("include", "adults"),
        Criterion("exclude", "no control group"),
        Criterion("exclude", "animals & <b>cells</b>"),
    )
    assert [each.reason for each in read_criteria("Include: adults\nweight: unknown")] == [
        "not: adults",
        "weight: unknown",
    ]
    assert read_criteria(" \n\n") == ()


def test_an_abstract_discarded_for_a_criterion_is_counted_under_it() -> None:
    machine = screened()
    discarded = [
        Override(
            abstract_id=each,
            field="recommendation",
            value="discard",
            reason=why,
            reviewer="Ada",
            at="",
        )
        for each, why in (
            ("a", "no control group"),
            ("b", "not: adults"),
            ("c", "I doubt this: no control group"),
        )
    ]
    reasons = {each.label: each.count for each in apply_review(machine, discarded).flow.excluded}
    assert reasons == {
        "no control group": 1,
        "not: adults": 1,
        "a person's decision": 1,
        "about something else": 1,
    }
    assert "no control group (n = 1)" in words(prisma_svg(apply_review(machine, discarded)))
