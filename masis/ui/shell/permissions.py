"""Actions that need a permission. Without it a button is disabled, and its tooltip names the role.

The services check permissions on every call; hiding or disabling a button protects nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict

import streamlit as st
from pydantic import ValidationError

from masis.errors import MasisError
from masis.schema.actor import PERMISSIONS, Permission
from masis.ui.shell.reviewer import actor
from masis.ui.shell.served_database import served_workbench
from masis.views.markdown import escape_markdown


class ButtonState(TypedDict):
    """The arguments of a button that control whether it is enabled and its tooltip."""

    disabled: bool
    help: str | None


def button_state(
    permission: Permission,
    *,
    disabled: bool = False,
    help: str | None = None,  # noqa: A002
) -> ButtonState:
    """Return the state of a button for an action that needs a permission.

    Args:
        permission: The permission that the action needs.
        disabled: Whether the button is disabled for another reason.
        help: The tooltip for people with the permission.

    """
    user = actor()
    if served_workbench().access.allows(user, permission):
        return ButtonState(disabled=disabled, help=help)
    return ButtonState(
        disabled=True,
        help=(
            f"You need the {PERMISSIONS[permission]} role. Your roles:"
            f" {', '.join(user.roles) or 'none'}."
        ),
    )


def action(
    label: str,
    key: str,
    icon: str,
    on_click: Callable[..., None],
    *args: Any,
    requires: Permission = "audit",
    disabled: bool = False,
    why: str | None = None,
    **shown: Any,
) -> None:
    """Draw a button for an action that needs a permission.

    ``requires`` is the permission and ``why`` the tooltip for people who have it.
    """
    state = button_state(requires, disabled=disabled, help=why)
    sign = f":material/{icon}:" if icon else None
    st.button(label, key=key, icon=sign, on_click=on_click, args=args, **shown, **state)


def run_action(act: Callable[[], object]) -> bool:
    """Run the action of a form and return whether it succeeded; errors are shown as a warning."""
    try:
        act()
    except ValidationError as error:
        # pydantic puts this prefix before the message of a validator's ValueError.
        st.warning(
            escape_markdown(error.errors(include_url=False)[0]["msg"].removeprefix("Value error, "))
        )
    except (ValueError, MasisError) as error:
        st.warning(escape_markdown(str(error)))
    else:
        return True
    return False
