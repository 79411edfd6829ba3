"""Personal tokens on the Team page."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from masis.services import Workbench
from tests.reviewing import ADA
from tests.ui.conftest import open_page, press, texts


def tokens_tab(session_name: str = "Ada") -> AppTest:
    return open_page("team", {"reviewer-name": session_name}, view="tokens")


def test_a_token_is_shown_once_and_can_be_revoked(audited_workbench: Workbench) -> None:
    app = tokens_tab()
    assert "There are no tokens yet." in texts(app)
    app.text_input(key="token-label").set_value("nightly import")
    app.number_input(key="token-days").set_value(30)
    press(app, "Create a token")
    (token,) = audited_workbench.tokens.list_for(ADA)
    assert (token.label, token.owner, token.role) == ("nightly import", "Ada", "admin")
    (shown,) = [code.value for code in app.code]
    found = audited_workbench.tokens.actor_of(shown, lambda _, role: role)
    assert found is not None
    assert found.name == "Ada"
    assert "It can't be shown again" in app.success[0].value
    app.run()
    assert not app.code
    press(app, f"revoke-{token.id}")
    assert audited_workbench.tokens.list_for(ADA)[0].revoked_at is not None
    assert audited_workbench.tokens.actor_of(shown, lambda _, role: role) is None
    assert "1 revoked or expired token" in [expander.label for expander in app.expander]


def test_a_token_without_a_purpose_is_refused(audited_workbench: Workbench) -> None:
    app = tokens_tab()
    press(app, "Create a token")
    assert "Say what the token is for" in app.warning[0].value
    assert audited_workbench.tokens.list_for(ADA) == ()


def test_markup_in_a_label_is_shown_as_text(audited_workbench: Workbench) -> None:
    audited_workbench.tokens.create(ADA, "**bold** [x](http://evil.example) :red[y]")
    shown = texts(tokens_tab())
    assert "\\*\\*bold\\*\\*" in shown
    assert "](http" not in shown
