"""Text that tries to be more than text, wherever text can stand: nothing runs, nothing leaves,
nothing breaks.

In the case, in what models said (answers, reasons, findings, warnings, their names), in decisions
and drafts, in the address, in what is typed, and in the name of a file.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, expect
from playwright.sync_api import TimeoutError as PlaywrightTimeoutError

from masis.schema.case import Case
from masis.schema.review import Decision
from masis.schema.run import Run
from masis.services import Workbench
from tests.browser.conftest import Tab, serving
from tests.reviewing import ADA, submit, undone

MARKUP = (
    "<script>window.hacked = 1</script>"
    "<img src='http://192.0.2.1/leak.png' onerror='window.hacked = 2'>"
    "<iframe src='javascript:parent.hacked = 3'></iframe>"
    "<form action='http://192.0.2.1/'><button>Press</button></form>"
    "<style>body { display: none }</style>"
    "<svg onload='window.hacked = 4'></svg>"
    "![image](http://192.0.2.1/markdown.png) [link](javascript:window.hacked=5) "
    "</textarea></div> {{7*7}} ${7*7} '; DROP TABLE cases; -- :material/delete: :red[x] $x^2$"
)
DIRECTIONS = "‮right to left‬ zero​width مرحبا \U0001f9ea e\u0301"
IDS = {
    "markup": f"id {MARKUP}"[:480],
    "plain": "hostile-plain",
    "long": "hostile-long",
    "many": "hostile-many",
}


def hostile_cases() -> list[Case]:
    everywhere = {
        "id": IDS["markup"],
        "query": f"Question {MARKUP} {DIRECTIONS}",
        "answer": (
            f"It is 12 metres long [chunk_1]. {MARKUP} It is 99 metres high [{MARKUP[:40]}]."
            f" {DIRECTIONS} [9]."
        ),
        "evidence": [
            {"id": "chunk_1", "text": f"The bridge is 120 metres long. {MARKUP}", "source": MARKUP},
            {
                "id": f"<b>{MARKUP}",
                "text": f"{DIRECTIONS} {MARKUP}",
                "source": "javascript:window.hacked=6",
            },
        ],
        "metadata": {"field": f"Field {MARKUP}", "dataset": MARKUP},
    }
    plain = {**everywhere, "id": IDS["plain"], "metadata": {"field": "Engineering"}}
    long = {
        "id": IDS["long"],
        "query": "long " * 2_000,
        "answer": "A very long answer says this [chunk_1]. " + "x" * 100_000,
        "evidence": [{"id": "chunk_1", "text": "y" * 100_000}],
    }
    many = {
        "id": IDS["many"],
        "query": "Which chunk says that the tower is 30 metres high?",
        "answer": "The tower is 30 metres high [chunk_777].",
        "evidence": [
            {"id": f"chunk_{number}", "text": f"The tower is {number} metres wide."}
            for number in range(2_000)
        ],
    }
    return [Case.model_validate(record) for record in (everywhere, plain, long, many)]


class Hostile(NamedTuple):
    base: str
    database: Path
    run: str


def answer_with_markup(run: Run) -> Run:
    """The run as if its models had answered with markup everywhere they may say something."""

    def spoilt(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: MARKUP if name in SAID else spoilt(item) for name, item in value.items()}
        return [spoilt(item) for item in value] if isinstance(value, list) else value

    data = run.model_dump(mode="json")
    data["models"] = {role: f"{role} {MARKUP}" for role in data["models"]}
    data["review_reasons"] = [{"code": "low_confidence", "message": MARKUP}]
    data["warnings"] = [{"code": "w", "step": None, "iteration": 1, "message": MARKUP}]
    return Run.model_validate(
        {**data, "iterations": [spoilt(iteration) for iteration in data["iterations"]]}
    )


SAID = {
    "critique_reasoning",
    "message",
    "reasoning",
    "why",
    "detail",
    "explanation",
    "suggestion",
    "todo",
    "hint",
}


@pytest.fixture(scope="module")
def hostile(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hostile]:
    folder: Path = tmp_path_factory.mktemp("hostile")
    workbench = Workbench.open(folder / "hostile.db")
    workbench.cases.add(ADA, hostile_cases())
    runs = {case.id: workbench.audits.audit(ADA, case) for case in hostile_cases()}
    said = answer_with_markup(runs[IDS["plain"]].model_copy(update={"id": "said"}))
    workbench.store.runs.finish(said)
    for case_id in (IDS["markup"], IDS["plain"]):
        submit(
            workbench,
            Decision(
                reviewer=MARKUP[:80],
                case_id=case_id,
                run_id=runs[case_id].id,
                iteration=1,
                verdict="override",
                reason=MARKUP,
                note=f"{MARKUP} {DIRECTIONS}",
                corrected_answer=f"{MARKUP} {DIRECTIONS}",
            ),
        )
    undone(workbench, IDS["markup"], MARKUP[:80])
    for field in ("note", "corrected", "other", "question", "evidence", "answer"):
        workbench.store.drafts.save("", f"case:{IDS['plain']}", {field: MARKUP})
    workbench.store.close()
    with serving("serve", "--db", str(folder / "hostile.db"), folder=folder) as base:
        yield Hostile(base, folder / "hostile.db", runs[IDS["plain"]].id)


def assert_nothing_ran(tab: Tab) -> None:
    assert tab.page.evaluate("() => window.hacked") is None
    in_content = "[data-testid=stMain]"
    # The chart brings an empty form of its own, without a place to send to.
    assert tab.page.locator(f"{in_content} :is(iframe, form[action], img, script)").count() == 0
    assert tab.page.locator(f"{in_content} a[href^='javascript' i]").count() == 0
    assert tab.page.evaluate("() => getComputedStyle(document.body).display") != "none"
    tab.assert_clean()


PAGES = {
    "/": True,
    "/queue": True,
    "/decisions": True,
    "/retention": True,
    "/metrics?show=all": True,
    "/review?case=hostile-plain&run=said": False,
    "/compare?case=hostile-plain&left={run}&right=said": False,
    "/new?case=hostile-plain": False,
    "/new?job=said&case=hostile-plain": False,
}
"""What each page is asked for, and whether it draws a table of what is in the database."""


@pytest.mark.parametrize("which", list(IDS))
def test_hostile_text_in_a_case_stays_text(
    hostile: Hostile, open_tab: Callable[..., Tab], which: str
) -> None:
    tab = open_tab(hostile.base)
    tab.open("/queue?standing=wrong,not_confirmed,nothing_found,waits,decided")
    expect(tab.page.locator("table.list tbody tr")).to_have_count(4)
    tab.page.locator("table.list tbody tr", has_text=IDS[which][:30]).last.locator("a").click(
        delay=40
    )
    expect(tab.page.locator(".evidence article.card").first).to_be_visible(timeout=20_000)
    tab.settle()
    assert_nothing_ran(tab)
    # its correction is seen first
    if (original := tab.page.get_by_role("button", name="Original answer")).count():
        original.click(delay=40)
    tab.page.locator(".text .mark.active").first.click(delay=40)
    tab.page.locator(".evidence article.card").first.click(delay=40)
    assert_nothing_ran(tab)


def test_no_page_executes_loads_or_is_widened_by_outside_text(
    hostile: Hostile, open_tab: Callable[..., Tab]
) -> None:
    tab = open_tab(hostile.base, width=900)
    page = tab.page
    for address, rows in PAGES.items():
        tab.open(address.format(run=hostile.run))
        if rows:
            expect(page.locator("tbody tr").first).to_be_visible()
        if address == "/queue":
            expect(page.locator("table.list")).to_contain_text("<script>window.hacked = 1</script>")
        assert_nothing_ran(tab)
        overflow = page.locator("[data-testid=stMain]").evaluate(
            "main => main.scrollWidth - main.clientWidth"
        )
        assert overflow <= 0, address
        for cell in page.locator("tbody td:not(:empty)").all()[:30] if rows else ():
            box = cell.bounding_box()
            assert box is None or box["x"] + box["width"] <= 900, address


def test_100_000_combining_marks_render_about_as_fast_as_letters(
    browser: Browser, open_tab: Callable[..., Tab], tmp_path: Path
) -> None:
    workbench = Workbench.open(tmp_path / "marks.db")
    for name, sign in (("letters", "a"), ("marks", "\u0301")):
        long = f"It is a{sign * 100_000} long [1]."
        content = {
            "id": name,
            "query": long,
            "answer": long,
            "evidence": [{"id": "1", "text": long}],
        }
        case = Case.model_validate(content)
        workbench.cases.add(ADA, [case])
        workbench.audits.audit(ADA, case)
    workbench.close()
    taken: dict[str, float] = {}
    with serving("serve", "--db", str(tmp_path / "marks.db"), folder=tmp_path) as base:
        tab = open_tab(base)
        for name in ("letters", "letters", "marks"):  # the first page of a tab takes longer
            page = tab.open(f"/review?case={name}")
            expect(page.locator(".evidence article.card").first).to_be_visible(timeout=60_000)
            page.screenshot()
            # milliseconds since the page was asked for
            taken[name] = page.evaluate("() => performance.now()")
            tab.open("/queue?standing=wrong,not_confirmed,nothing_found")
            expect(tab.page.locator("table.list tbody tr")).to_have_count(2, timeout=60_000)
            page.screenshot()
    assert taken["marks"] < 3 * taken["letters"] + 2_000, taken


def test_values_in_the_url_are_only_used_to_look_things_up(
    hostile: Hostile, open_tab: Callable[..., Tab]
) -> None:
    tab = open_tab(hostile.base)
    markup, names = (
        quote(MARKUP),
        "q state flag field model reviewer case run iteration job left right verdict since",
    )
    said = (
        "&".join(f"{name}={markup}" for name in names.split())
        + f"&show=all&of={markup}&at={markup}"
    )
    for name in ("queue", "review", "new", "compare", "decisions", "metrics"):
        tab.open(f"/{name}?{said}&page=99999999&size=-1&order=%00&quality=nan-inf")
        assert_nothing_ran(tab)
    page = tab.open("/queue")
    page.get_by_label("Search").fill('" OR 1=1; DROP TABLE cases; -- *')
    page.get_by_label("Search").press("Enter")
    tab.settle()
    assert_nothing_ran(tab)


def test_text_typed_into_a_decision_is_never_interpreted(
    hostile: Hostile, open_tab: Callable[..., Tab]
) -> None:
    tab = open_tab(hostile.base)
    tab.page.add_init_script("localStorage.setItem('masis-advance', 'off')")
    page = tab.open(f"/review?case={IDS['many']}")
    page.locator("[data-ready=true]").wait_for()
    page.keyboard.press("o")
    page.get_by_label("Corrected answer").fill(MARKUP)
    form = page.get_by_role("region", name="Decision")
    form.locator("label.reason", has_text="Other").click(delay=40)
    form.get_by_label("Reason in your own words").fill(MARKUP)
    page.get_by_label("Note").fill(MARKUP + DIRECTIONS)
    page.get_by_label("Your name").last.fill(MARKUP[:80])
    page.get_by_label("Your name").last.blur()
    tab.settle()
    assert_nothing_ran(tab)
    form.get_by_role("button", name="Submit").click(delay=40)
    expect(form.get_by_role("status").first).to_contain_text("Overrode ")
    form.get_by_text("History of this case").click(delay=40)
    expect(form.locator(".entries")).to_contain_text("<script>window.hacked = 1</script>")
    assert_nothing_ran(tab)


FILES = {
    "<img src=http://192.0.2.1/name.png onerror=window.hacked=9>.csv": (
        f'id,text\n1,"{MARKUP[:80]}"\n'
    ),
    "'; DROP TABLE cases; --.jsonl": '{"id": "<script>window.hacked=1</script>", "text": "x"}\n',
    "\u202etxt.exe.txt": f"[1] {MARKUP}\n\n[2] null \0 byte {DIRECTIONS}",
    "long.txt": "x" * 100_000,
    "broken.csv": '\0\0"""\n,,,\n',
}


def test_hostile_files_are_read_as_text_or_rejected_with_a_message(
    hostile: Hostile, open_tab: Callable[..., Tab]
) -> None:
    tab = open_tab(hostile.base)
    page = tab.open("/new")
    for _ in range(5):  # a click that falls into a rerun of the page is lost
        page.get_by_role("button", name="From a file").nth(1).click(delay=40)
        try:
            page.locator("input[type=file]").wait_for(state="attached", timeout=10_000)
            break
        except PlaywrightTimeoutError:
            continue
    for name, content in FILES.items():
        file: Any = {"name": name, "mimeType": "text/plain", "buffer": content.encode()}
        page.locator("input[type=file]").set_input_files(file)
        tab.settle()
        assert_nothing_ran(tab)


def test_every_table_is_intact_after_the_hostile_inputs(hostile: Hostile) -> None:
    with sqlite3.connect(hostile.database) as connection:
        assert connection.execute("SELECT count(*) FROM cases").fetchone()[0] >= 4
    workbench = Workbench.open(hostile.database)
    assert workbench.store.check().problems == ()
    assert workbench.store.decisions.verify().intact
    workbench.store.close()
