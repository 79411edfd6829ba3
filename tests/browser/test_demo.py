"""What the demo's server shows and refuses: its list, back and forward, a file imported, and pages
of other sites.
"""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import streamlit
from playwright.sync_api import Browser, Locator, Page, expect

from masis.services import Workbench, demo_cases
from masis.ui.shell.streamlit_internals import ELEMENTS, PAGE_STATE, selector
from tests.browser.conftest import IDLE, Tab, serving
from tests.browser.test_new_audit import pick
from tests.reviewing import ADA

FABRICATED = "strategy-01"

OpenTab = Callable[..., Tab]


def audited(tab: Tab, case_id: str) -> None:
    """Open the first iteration of a case; all of the demo's are audited."""
    tab.open(f"/review?case={case_id}&iteration=1")


def test_searching_narrows_the_list_and_updates_the_url(demo: str, open_tab: OpenTab) -> None:
    tab = open_tab(demo)
    page = tab.open("/queue")
    page.get_by_label("Search").fill("Halvorsen Marine offshore")
    page.get_by_label("Search").press("Enter")
    expect(page.locator("table.list tbody")).to_contain_text("Halvorsen Marine")
    expect(page).to_have_url(re.compile("q=Halvorsen"))
    tab.settle()
    rows = page.locator("table.list tbody tr").count()
    page.reload()
    tab.settle()
    expect(page.locator("table.list tbody tr")).to_have_count(rows)
    assert rows < 20


def test_an_empty_database_shows_its_path_and_imported_cases_are_audited_with_one_button(
    browser: Browser, open_tab: OpenTab, tmp_path: Path
) -> None:
    with serving("serve", "--db", str(tmp_path / "empty.db"), folder=tmp_path) as base:
        tab = open_tab(base)
        page = tab.open("/settings")  # the first thing that this server is asked for
        expect(page.get_by_role("link", name="Queue")).to_be_visible()
        expect(page.get_by_text("empty.db").first).to_be_visible()
        tab.open()
        expect(page.get_by_role("heading", name="No cases yet")).to_be_visible()
        Workbench.open(tmp_path / "empty.db").cases.add(
            ADA, [case for case, _ in zip(demo_cases(), range(7), strict=False)]
        )
        tab.open()
        expect(page.get_by_role("heading", name="7 cases have not been audited")).to_be_visible()
        page.get_by_role("button", name="Audit all 7").click(delay=40)
        expect(page.get_by_role("heading", name=re.compile("cases? needs? review"))).to_be_visible(
            timeout=60_000
        )
        expect(page.get_by_role("button", name="Audit all")).to_have_count(0, timeout=60_000)


def test_every_response_has_the_content_security_policy(demo: str) -> None:
    with urllib.request.urlopen(demo, timeout=60) as response:
        policy = response.headers["content-security-policy"]
    assert "connect-src 'self'" in policy
    assert "img-src 'self' data: blob:" in policy
    assert "form-action 'self'" in policy


def test_the_next_page_of_the_queue_is_numbered_and_starts_at_its_top(
    demo: str, open_tab: OpenTab
) -> None:
    page = open_tab(demo).open("/queue")
    expect(page.get_by_text(re.compile(r"^1 of \d$"))).to_be_visible()
    page.get_by_test_id("stMain").evaluate("main => main.scrollTo(0, main.scrollHeight)")
    page.locator(".st-key-page-number button").last.click(delay=40)
    expect(page.get_by_text(re.compile(r"^2 of \d$"))).to_be_visible()
    page.wait_for_function("document.querySelector('[data-testid=stMain]').scrollTop === 0")


def test_one_navigation_is_one_entry_in_the_browser_history(demo: str, open_tab: OpenTab) -> None:
    tab = open_tab(demo)
    page = tab.open("/queue?page=2")

    def stands(address: str, shown: Locator) -> None:
        expect(page).to_have_url(re.compile(address))
        expect(shown).to_be_visible()
        tab.settle()

    filtered, case = r"/queue\?standing=wrong$", r"/review\?standing=wrong&case="
    rows, evidence = page.locator("table.list"), page.locator(".evidence article.card").first
    page.get_by_role("radio", name=re.compile("^Something is wrong")).click(delay=40)
    stands(filtered, rows)
    page.go_back()
    stands(r"/queue\?page=2$", page.get_by_text("21 to ", exact=False))
    page.go_forward()
    stands(filtered, rows)
    page.locator("table.list tbody a").first.click(delay=40)
    stands(case, evidence)
    page.go_back()
    stands(filtered, rows)
    page.go_forward()
    stands(case, evidence)
    page.get_by_role("button", name="Queue", exact=True).click(delay=40)
    stands(filtered, rows)
    page.go_back()
    stands(case, evidence)
    for name in ("Decisions", "Metrics"):
        tab.choose("Understand", name)
        stands(rf"/{name.lower()}$", page.get_by_role("heading", name=name, exact=True))
    page.go_back()
    stands(r"/decisions$", page.get_by_role("heading", name="Decisions", exact=True))


HOSTILE = (
    "<script>document.title='owned'</script><img src=http://example.org/x onerror=alert(1)>"
    " ![](http://example.org/y)"
)
ROWS = (
    "frage,fundstelle 1,fundstelle 2,antwort\n"
    'How long is the Marle weir?,"The Marle weir is 120 m long.",It was built in 1931.,It is 210 m'
    " long [1].\n"
    f'How old is it?,It was built in 1931.,"{HOSTILE}",It was built in 1931 [1].\n'
)


def test_a_file_with_custom_columns_is_imported_and_audited(
    demo: str, open_tab: OpenTab, tmp_path: Path
) -> None:
    file = tmp_path / f"{HOSTILE.replace('/', '_')[:60]}.csv"
    file.write_text(ROWS, encoding="utf-8")
    tab = open_tab(demo)
    page = tab.open("/import")
    page.locator("input[type=file]").set_input_files(str(file))
    expect(page.get_by_text("The first row fits no known format")).to_be_visible()
    begin = page.get_by_role("button", name="Import the cases")
    # question and answer are proposed by their names, which are German
    expect(begin).to_be_enabled()
    tab.settle()
    first = page.get_by_role("region", name=re.compile("Case 1: "))
    expect(first.get_by_text("An answer with 1 citation.")).to_be_visible()
    pick(page, "Question", "antwort: It is 210 m long [1].")
    tab.settle()
    pick(page, "Question", "frage: How long is the Marle weir?")
    expect(first.get_by_text("An answer with 1 citation.")).to_be_visible()
    page.reload()
    tab.settle()
    expect(first.get_by_text("An answer with 1 citation.")).to_be_visible()
    expect(page.get_by_text("Of 2 rows, 2 cases can be imported, 0 rows can't.")).to_be_visible()
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("heading", name="2 cases imported")).to_be_visible()
    page.get_by_role("button", name=re.compile("Audit ")).click(delay=40)
    page.get_by_role("main").get_by_role("link", name="See the 2 imported cases").click(delay=40)
    tab.settle()
    imported = page.get_by_role("link", name="How long is the Marle weir?")
    expect(imported).to_be_visible()
    imported.click(delay=40)
    expect(page.get_by_text("Approve", exact=True)).to_be_visible(timeout=60_000)
    assert page.title() != "owned"


PAGES = ("/new", "/retention", "/queue", "/")
NEVER_DRAWN = {
    "hint": "drawn under a text that was typed and not sent yet",
    "toasts": "drawn with a message, such as that of a new name",
    "dialog": "no page opens one: it is looked for so that keys do nothing behind a dialog",
    "primary_submit": "drawn by the retention page only where something is past its time",
}
WHERE = "see masis/ui/shell/streamlit_internals.py"


def test_streamlit_still_renders_the_elements_that_styles_and_scripts_use(
    demo: str, open_tab: OpenTab
) -> None:
    tab = open_tab(demo)
    drawn = set()
    for page in PAGES:
        tab.open(page)
        tab.page.locator(selector("navigation_menu")).first.click(delay=40)
        tab.page.locator(selector("navigation_menu_link")).first.wait_for()
        drawn |= {name for name in ELEMENTS if tab.page.locator(selector(name)).count()}
    gone = {ELEMENTS[name] for name in ELEMENTS.keys() - drawn - NEVER_DRAWN.keys()}
    assert not gone, (
        f"Streamlit {streamlit.__version__} draws no {', '.join(sorted(gone))} any more: {WHERE}"
    )
    data = dict(tab.page.locator(selector("app")).evaluate("app => ({ ...app.dataset })"))
    for name in ("connection", "script"):
        value = data.get(PAGE_STATE[name])
        wanted = PAGE_STATE["connected" if name == "connection" else "idle"]
        assert value == wanted, (
            f"Streamlit {streamlit.__version__} says {value!r} about its {name}: {WHERE}"
        )


FOREIGN = "rebound.example"
"""A name that the browser resolves to 127.0.0.1 (``tools/browser.FLAGS``)."""


@pytest.fixture
def foreign(browser: Browser) -> Iterator[Page]:
    """A tab of its own, which no test of other hosts watches."""
    context = browser.new_context()
    yield context.new_page()
    context.close()


def port_of(base: str) -> int:
    port = urlsplit(base).port
    assert port
    return port


def test_a_page_of_another_site_cant_reach_the_local_server(demo: str, foreign: Page) -> None:
    foreign.route(
        "http://rebound.example:1/",
        lambda route: route.fulfill(content_type="text/html", body="<p>"),
    )
    foreign.goto("http://rebound.example:1/")
    opened = foreign.evaluate(
        """base => new Promise(done => {
          const socket = new WebSocket(base.replace("http", "ws") + "/_stcore/stream", ["streamlit"])
          socket.onopen = () => done("open"); socket.onerror = () => done("refused") })""",
        demo,
    )
    assert opened == "refused"
    read = foreign.evaluate(
        "base => fetch(base + '/health.json').then(r => r.text()).catch(() => 'refused')", demo
    )
    assert read == "refused"


def test_every_page_warns_that_an_exposed_server_has_no_sign_in(
    foreign: Page, tmp_path: Path
) -> None:
    wide = ("--address", "0.0.0.0", "--allow-host", FOREIGN, "--insecure")
    with serving("serve", "--db", str(tmp_path / "mine.db"), *wide, folder=tmp_path) as base:
        for host, path in ((FOREIGN, ""), (FOREIGN, "settings"), ("127.0.0.1", "queue")):
            foreign.goto(f"http://{host}:{port_of(base)}/{path}")
            foreign.wait_for_selector(IDLE)
            expect(foreign.get_by_text("open to the network without sign-in")).to_be_visible()
        refused = foreign.goto(f"http://other.localhost:{port_of(base)}/")
        assert refused.status == 421
