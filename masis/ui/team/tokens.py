"""Personal tokens on the Team page: create one, see which exist, and revoke them."""

from __future__ import annotations

from functools import partial

import streamlit as st

from masis.schema.actor import ROLES, Role
from masis.schema.base import utc_now
from masis.schema.tokens import ApiToken
from masis.schema.wording import count_noun
from masis.services import Workbench
from masis.services.tokens import DEFAULT_DAYS, LONGEST_LABEL, MOST_DAYS
from masis.ui.shell.permissions import action, run_action
from masis.ui.shell.reviewer import actor
from masis.views.markdown import escape_markdown

_CREATED = "created-token"
"""Session state key of the text of a new token, which is shown once."""

_WIDTHS = (4, 2, 2, 3, 2)


def draw_tokens(workbench: Workbench) -> None:
    """Draw the tokens of the person, or of everyone for an admin, and the form for a new one."""
    st.markdown(
        "A program uses the workbench with a token: it decides, comments, audits or exports under"
        " your name, with your rights. `masis queue --url ADDRESS` and"
        ' `masis.Desk("https://...")` read the token from the variable `MASIS_TOKEN`.'
    )
    # pop, so that the text is gone with the next run
    if (text := st.session_state.pop(_CREATED, None)) is not None:
        st.success("Copy the token now. It can't be shown again.", icon=":material/key:")
        st.code(text, language=None)
    tokens = workbench.tokens.list_for(actor())
    _draw_form(workbench)
    if not tokens:
        st.caption("There are no tokens yet.")
        return
    now = utc_now()
    valid = [token for token in tokens if token.is_valid(now)]
    ended = [token for token in tokens if not token.is_valid(now)]
    for token in valid:
        _draw_token(workbench, token, now)
    if ended:
        with st.expander(count_noun(len(ended), "revoked or expired token")):
            for token in ended:
                _draw_token(workbench, token, now)


def _draw_form(workbench: Workbench) -> None:
    user = actor()
    own = max(user.roles, key=ROLES.index) if user.roles else ROLES[-1]
    with (
        st.form("new-token", border=False, clear_on_submit=True),
        st.container(horizontal=True, vertical_alignment="bottom"),
    ):
        label = st.text_input(
            "Purpose",
            key="token-label",
            max_chars=LONGEST_LABEL,
            placeholder="nightly import",
        )
        role = st.selectbox(
            "Maximum role",
            ROLES[: ROLES.index(own) + 1],
            index=ROLES.index(own),
            key="token-role",
            help="A token never has more rights than you have at the moment.",
        )
        days = st.number_input(
            "Days until it expires", 1, MOST_DAYS, DEFAULT_DAYS, key="token-days"
        )
        submitted = st.form_submit_button(
            "Create a token", icon=":material/add:", key="create-token"
        )
    if submitted and run_action(lambda: _create(workbench, label, role, days)):
        st.rerun()


def _create(workbench: Workbench, label: str, role: Role, days: int) -> None:
    created = workbench.tokens.create(actor(), label, role=role, days=days)
    st.session_state[_CREATED] = created.text


def _revoke(workbench: Workbench, token_id: str) -> None:
    workbench.tokens.revoke(actor(), token_id)


def _draw_token(workbench: Workbench, token: ApiToken, now: str) -> None:
    with st.container(key=f"token-{token.id}"):
        label, owner, role, ends, button = st.columns(_WIDTHS, vertical_alignment="center")
    label.markdown(f"**{escape_markdown(token.label)}**")
    owner.markdown(escape_markdown(token.owner))
    role.markdown(token.role)
    used = f"last used {token.used_at[:10]}" if token.used_at else "never used"
    if token.revoked_at is not None:
        ends.caption(f"revoked {token.revoked_at[:10]}, {used}")
    elif token.is_valid(now):
        ends.caption(f"until {token.expires_at[:10]}, {used}")
        with button:
            action(
                "Revoke",
                f"revoke-{token.id}",
                "block",
                partial(_revoke, workbench, token.id),
                requires="read",
                why="The next request with it is refused.",
                type="tertiary",
            )
    else:
        ends.caption(f"expired {token.expires_at[:10]}, {used}")
