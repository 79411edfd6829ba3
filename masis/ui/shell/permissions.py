"""Acts: what a role doesn't allow is shown disabled, with the role that it takes; what is refused
says why.

The services ask for the role all the same: a page is no protection.
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
    """The arguments of a button that say whether it can be pressed, and what its tooltip says."""

    disabled: bool
    help: str | None


def button_state(
    permission: Permission,
    *,
    disabled: bool = False,
    help: str | None = None,  # noqa: A002
) -> ButtonState:
    """Return the state of a button that does what takes a permission.

    Args:
        permission: What the button does.
        disabled: Whether it can't be pressed for another reason.
        help: Its tooltip where it can.

    """
    user = actor()
    if served_workbench().access.allows(user, permission):
        return ButtonState(disabled=disabled, help=help)
    return ButtonState(
        disabled=True,
        help=(
            f"Takes the role {PERMISSIONS[permission]}; you have {', '.join(user.roles) or 'none'}."
        ),
    )


def action(
    label: str,
    key: str,
    icon: str,
    on_click: Callable[..., None],
    *args: Any,
    takes: Permission = "audit",
    disabled: bool = False,
    why: str | None = None,
    **shown: Any,
) -> None:
    """Draw a button that does what takes a permission; ``why`` is its tooltip where a person has
    that.
    """
    state = button_state(takes, disabled=disabled, help=why)
    sign = f":material/{icon}:" if icon else None
    st.button(label, key=key, icon=sign, on_click=on_click, args=args, **shown, **state)


def run_action(act: Callable[[], object]) -> bool:
    """Do what a form asks for, and return whether it was done; what is wrong with it is said where
    it is not.
    """
    try:
        act()
    except ValidationError as error:
        st.warning(
            escape_markdown(error.errors(include_url=False)[0]["msg"].removeprefix("Value error, "))
        )
    except (ValueError, MasisError) as error:
        st.warning(escape_markdown(str(error)))
    else:
        return True
    return False
