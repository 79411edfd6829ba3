"""Signing in with an OpenID Connect provider: the whole code flow, in a browser, against a provider
on this machine.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import Browser, Page, expect

from masis.services import Workbench
from masis.services.reviews import SIGNED_IN_BY
from tests.browser.test_sign_in import bridge, decide_case
from tests.reviewing import ADA
from tests.waiting import until
from tools.browser import settle
from tools.serving import free_port, serving

USERS: dict[str, dict[str, Any]] = {
    "sub-ro": {
        "preferred_username": "ro@example.org",
        "realm_access": {"roles": ["masis-reviewer"]},
    },
    "sub-cy": {
        "preferred_username": "cy@example.org",
        "realm_access": {"roles": ["something-else"]},
    },
    "sub-xx": {
        "preferred_username": "acceptance policy",
        "realm_access": {"roles": ["masis-reviewer"]},
    },
}


class Served(NamedTuple):
    """A workbench, the provider it trusts, and its database as the machine's owner sees it."""

    base: str
    provider: str
    workbench: Workbench


@pytest.fixture(scope="module")
def provider(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A provider in a process of its own, with three users."""
    port, log = free_port(), tmp_path_factory.mktemp("provider") / "log"
    users = [f"--user-claims={json.dumps({'sub': sub, **claims})}" for sub, claims in USERS.items()]
    with log.open("w") as output:
        command = [
            sys.executable,
            "-m",
            "oidc_provider_mock",
            "--port",
            str(port),
            "--require-nonce",
            *users,
        ]
        process = subprocess.Popen(command, stdout=output, stderr=output)
        try:
            base = f"http://127.0.0.1:{port}"
            discovery_url = f"{base}/.well-known/openid-configuration"
            until(
                lambda: is_reachable(discovery_url) or process.poll() is not None,
                "the provider answers",
            )
            assert process.poll() is None, log.read_text()
            yield base
        finally:
            process.terminate()
            process.wait(timeout=60)


def is_reachable(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=1):
            return True
    except OSError:
        return False


@pytest.fixture(scope="module")
def served(provider: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder, port = tmp_path_factory.mktemp("oidc"), free_port()
    (folder / "oidc.toml").write_text(
        f"""
[oidc]
label = "the test provider"
server_metadata_url = "{provider}/.well-known/openid-configuration"
client_id = "masis"
redirect_uri = "http://127.0.0.1:{port}/oauth2callback"
roles_claim = "realm_access.roles"
roles = {{ masis-reviewer = "reviewer" }}
""",
        encoding="utf-8",
    )
    (folder / "masis.secrets.toml").write_text(
        'MASIS_OIDC_CLIENT_SECRET = "of the client"', encoding="utf-8"
    )
    workbench = Workbench.open(folder / "oidc.db")
    workbench.cases.add(ADA, [bridge(0)])
    workbench.audits.audit(ADA, bridge(0))
    options = ("--db", str(folder / "oidc.db"), "--sign-in", str(folder / "oidc.toml"))
    with serving("serve", *options, folder=folder, port=port) as server:
        yield Served(server.base, provider, workbench)
    workbench.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context()
    yield context.new_page()
    context.close()


def sign_in(page: Page, served: Served, sub: str) -> None:
    """Sign in through the provider: our page, the provider's, the callback, and back."""
    page.goto(f"{served.base}/queue")
    expect(page).to_have_title("Sign in · MASIS Workbench")
    page.get_by_role("link", name="Sign in with the test provider").click(delay=40)
    expect(page.get_by_role("heading", name="Authorize Client")).to_be_visible()
    expect(page).to_have_url(re.compile(re.escape(f"{served.provider}/oauth2/authorize?")))
    for needed in ("response_type=code", "nonce=", "state="):
        assert needed in page.url
    page.get_by_role("button", name=sub, exact=True).click(delay=40)
    page.wait_for_url(f"{served.base}/**")


def test_the_code_flow_signs_in_and_decisions_carry_issuer_and_subject(
    served: Served, page: Page
) -> None:
    sign_in(page, served, "sub-ro")
    settle(page)
    page.goto(f"{served.base}/review?case=bridge-0")
    settle(page)
    decide_case(page)
    expect(page.get_by_role("status").first).to_contain_text("Escalated ")
    (entry,) = [
        decision
        for decision in served.workbench.store.decisions.iterate()
        if decision.decision and decision.decision.kind == "decision"
    ]
    assert entry.decision.reviewer == "ro@example.org"
    assert entry.decision.extra[SIGNED_IN_BY].endswith("#sub-ro")
    page.get_by_role("button", name="ro@example.org").click(delay=40)
    expect(page.get_by_text("Signed in as ro@example.org, reviewer.")).to_be_visible()
    page.get_by_role("button", name="Sign out").click(delay=40)
    page.wait_for_url(lambda url: not url.startswith(f"{served.base}/review"))
    page.goto(f"{served.base}/review?case=bridge-0")
    expect(page).to_have_title("Sign in · MASIS Workbench")


def test_an_unsolicited_callback_doesnt_sign_anyone_in(served: Served, page: Page) -> None:
    for query in ("code=forged&state=forged", "error=access_denied", "", "code=x"):
        page.goto(f"{served.base}/oauth2callback?{query}")
        expect(page).to_have_title("Sign in · MASIS Workbench")
