"""Evidence without text in a real browser: pasted, audited as a new version, kept where it is refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from masis.schema.actor import Actor
from masis.schema.case import Case
from masis.services import Workbench
from tests.browser.conftest import Tab, serving

OpenTab = Callable[..., Tab]
ADA = Actor(name="Ada")
TEXT = "The Sonder bridge was opened in 1931. It is 120 metres long."
HOSTILE = "<img src=x onerror=\"document.title='owned'\">"


@pytest.fixture(scope="module")
def bare(browser: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """A server on an audited case of which only addresses are known."""
    folder = tmp_path_factory.mktemp("bare")
    database = folder / "bare.db"
    workbench = Workbench.open(database)
    for case_id in ("bridge", "bridge of another"):
        case = Case(
            id=case_id,
            query="When was the Sonder bridge opened?",
            answer="The Sonder bridge was opened in 1931 [1]. It carries two lanes [2].",
            evidence=[
                {"id": "1", "source": "https://example.org/bridge"},
                {"id": "2", "source": f"javascript:alert(1)//{HOSTILE}"},
            ],
        )
        workbench.cases.add(ADA, [case])
        workbench.audits.audit(ADA, case)
    workbench.close()
    with serving("serve", "--db", str(database), folder=folder) as base:
        yield base, database


def named(tab: Tab, case_id: str) -> None:
    tab.open(f"/review?case={case_id}")
    tab.page.get_by_label("Who reviews?").fill("Ada")
    tab.page.get_by_role("button", name="Start reviewing").click(delay=40)
    expect(tab.page.get_by_label("Who reviews?")).to_be_hidden()


def test_pasted_text_is_audited_as_a_new_version(bare: tuple[str, Path], open_tab: OpenTab) -> None:
    base, database = bare
    tab = open_tab(base)
    page = tab.page
    named(tab, "bridge")
    expect(page.get_by_text("No evidence has text, so nothing can be checked")).to_be_visible()
    links = page.get_by_role("link", name="https://example.org/bridge")
    expect(links).to_have_attribute("href", "https://example.org/bridge")
    assert page.locator("a[href^=javascript]").count() == 0
    page.get_by_label("Text of 1").fill(TEXT)
    page.get_by_role("button", name="Audit with this text").click(delay=40)
    expect(page).to_have_url(re.compile(r"case=bridge%402|case=bridge@2"), timeout=20_000)
    expect(page.get_by_text("Version 2 of this case: the text of 1 chunk of evidence was pasted.")).to_be_visible()
    expect(page.get_by_text("1 of 2 chunks of evidence has no text")).to_be_visible()
    expect(page.get_by_text("Scores", exact=True)).to_be_visible(timeout=60_000)
    page.get_by_role("button", name="Earlier version").click(delay=40)
    expect(page.get_by_text("A newer version of this case")).to_be_visible(timeout=20_000)
    expect(page.get_by_text("Superseded", exact=True).first).to_be_visible()
    expect(page.get_by_text("decide about that one")).to_be_visible()
    assert page.get_by_role("button", name="Audit with this text").count() == 0
    page.get_by_role("button", name="Open the newer version").click(delay=40)
    expect(page.get_by_text("Version 2 of this case")).to_be_visible(timeout=20_000)
    tab.assert_clean()
    workbench = Workbench.open(database)
    assert workbench.store.cases.get("bridge@2").evidence[0].text == TEXT
    assert workbench.drafts.get(ADA, "evidence:bridge").values == {}
    workbench.close()


def test_what_was_pasted_is_there_after_a_reload_and_where_it_is_refused(
    bare: tuple[str, Path], open_tab: OpenTab
) -> None:
    base, database = bare
    tab = open_tab(base)
    page = tab.page
    named(tab, "bridge%20of%20another")
    page.get_by_label("Text of 2").fill(TEXT)
    page.get_by_label("Text of 2").blur()
    workbench = Workbench.open(database)
    wanted = {"2": TEXT}
    expect(page.get_by_label("Text of 2")).to_have_value(TEXT)
    page.reload()
    tab.settle()
    expect(page.get_by_label("Text of 2")).to_have_value(TEXT)
    assert workbench.drafts.get(ADA, "evidence:bridge of another").values == wanted
    newer = workbench.versions.fill_evidence(ADA, "bridge of another", {"1": "Somebody else was faster."})
    page.get_by_role("button", name="Audit with this text").click(delay=40)
    expect(page.get_by_text("The audit with the pasted text was not started.")).to_be_visible(timeout=20_000)
    expect(page.get_by_text("has a newer version already")).to_be_visible()
    assert workbench.drafts.get(ADA, "evidence:bridge of another").values == wanted
    assert newer.id == "bridge of another@2"
    workbench.close()
    tab.assert_clean()
