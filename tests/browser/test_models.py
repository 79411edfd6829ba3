"""Language models in a real browser: chosen, tested, watched as they answer, and what they took
told afterwards.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.browser.conftest import Tab, serving
from tests.browser.test_new_audit import ANSWER, EVIDENCE, pick, start, type_case
from tests.served_replies import Behaviour, Request, faulty
from tests.serving_models import ModelServer
from tools.browser import settle

OpenTab = Callable[..., Tab]
KEY = "sk-loopback-0123456789abcdef"
LATENCY_MS = 1_500
"""A reply of a slow model, long enough to see what is shown in the meantime."""


def write_configuration(folder: Path, server: ModelServer) -> None:
    """Two providers of the user's own at one address, one with a price, one with a wrong key; the
    keys as secrets.
    """
    (folder / "masis.toml").write_text(
        "".join(
            f'[providers.{name}]\nkind = "openai"\naddress = "{server.address}"\nkey_env ='
            f' "{name.upper()}_KEY"\n'
            for name in ("here", "wrong")
        )
        + '[prices."here:m"]\ninput = 2.5\noutput = 10\n'
    )
    secrets = folder / "masis.secrets.toml"
    secrets.write_text(f'HERE_KEY = "{KEY}"\nWRONG_KEY = "sk-wrong-0123456789"\n')
    secrets.chmod(0o600)


def choose(page: Page, model: str) -> None:
    """Name the model of the critic, then use it for all roles."""
    settle(page)  # a list closes when the page is drawn again
    if not (field := page.get_by_label("Model of the critic")).is_visible():
        pick(page, "Critic", "Another model")
    field.fill(model)
    page.get_by_role("button", name="Use the critic's model for all").click(delay=40)
    settle(page)


def test_missing_and_wrong_api_keys_are_reported_and_a_valid_model_shows_its_cost(
    open_tab: OpenTab, browser: object, tmp_path: Path
) -> None:
    failures = itertools.count()

    def script(request: Request) -> Behaviour | None:
        return (
            faulty("429", request)
            if request.schema_name == "critique_reply" and next(failures) < 1
            else None
        )

    with ModelServer(script, latency_ms=400, issues="always", keys=[KEY]) as server:
        write_configuration(tmp_path, server)
        with serving("serve", "--db", str(tmp_path / "models.db"), folder=tmp_path) as base:
            tab = open_tab(base)
            page = tab.open("/new")
            type_case(page, "How long is the Sonder bridge?", EVIDENCE, ANSWER)
            page.locator("[data-testid=stExpander]").get_by_text("Settings", exact=True).click(
                delay=40
            )
            choose(page, "openai:gpt-4o")
            expect(page.get_by_text("A chosen model can't be used.")).to_be_visible()
            expect(page.get_by_text("OPENAI_API_KEY").first).to_be_visible()
            choose(page, "wrong:m")
            page.get_by_role("button", name="Test these models").click(delay=40)
            expect(page.get_by_text("WRONG_KEY").first).to_be_visible(timeout=20_000)
            assert "sk-wrong" not in page.content()
            assert "sk-wrong" not in (tmp_path / "server.log").read_text()
            choose(page, "here:m")
            sent = page.get_by_text("The audit sends question, evidence and answer to 127.0.0.1")
            expect(sent).to_be_visible(timeout=20_000)
            page.get_by_role("button", name="Test these models").click(delay=40)
            expect(page.get_by_text("here:m answers, in the form asked for.")).to_be_visible(
                timeout=20_000
            )
            start(page)
            expect(page.get_by_text("trying again in").first).to_be_visible(timeout=60_000)
            expect(page.get_by_text("tokens").first).to_be_visible(timeout=60_000)
            page.get_by_role("button", name="Review it").click(delay=40, timeout=60_000)
            expect(page.get_by_text("Spent").first).to_be_visible(timeout=30_000)
            expect(page.get_by_text("Critic: ").first).to_be_visible(timeout=20_000)
            assert KEY not in page.content()


def test_a_running_audit_shows_issues_and_cost_and_stopping_keeps_finished_work(
    open_tab: OpenTab, browser: object, tmp_path: Path
) -> None:
    with ModelServer(latency_ms=LATENCY_MS, issues="always", keys=[KEY]) as server:
        write_configuration(tmp_path, server)
        with serving("serve", "--db", str(tmp_path / "slow.db"), folder=tmp_path) as base:
            page = open_tab(base).open("/new")
            type_case(
                page, "How long is the Sonder bridge?", EVIDENCE, f"{ANSWER} It cost nothing [77]."
            )
            page.locator("[data-testid=stExpander]").get_by_text("Settings", exact=True).click(
                delay=40
            )
            choose(page, "here:m")
            start(page)
            first = page.get_by_text("Cites [9] and [77], which don't exist")
            expect(first).to_be_visible(timeout=60_000)
            # no iteration has come to its end
            expect(page.get_by_role("button", name="Stop")).to_be_visible()
            expect(page.get_by_text("tokens").first).to_be_visible(timeout=60_000)
            expect(page.get_by_text("Iteration 2").first).to_be_visible(timeout=120_000)
            expect(first).to_be_visible()
            page.get_by_role("button", name="Stop").click(delay=40)
            expect(page.get_by_role("heading", name="Audit stopped")).to_be_visible(timeout=60_000)
            page.get_by_role("button", name="Review it").click(delay=40)
            settle(page)
            expect(page.get_by_text("Cites [9] and [77], which don't exist")).to_be_visible(
                timeout=20_000
            )
            expect(page.get_by_text("Spent").first).to_be_visible()
