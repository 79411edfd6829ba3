"""A person without the right to change settings can't make the server open a file by naming it."""

from __future__ import annotations

from pathlib import Path

import pytest

from masis.errors import SettingsError
from masis.schema.actor import Actor, Role
from masis.services import OPEN, SIGN_IN_REQUIRED
from masis.services.model_names import assert_listed
from masis.settings import Settings
from tests.rooms import needs_integrations


def person(role: Role) -> Actor:
    return Actor(name="Ada", roles=(role,), authenticated=True)


def refusal(string: str, configured: Settings | None = None, who: Role = "reviewer") -> str:
    named = Settings(verifier=string)
    try:
        assert_listed(SIGN_IN_REQUIRED, person(who), named, configured or Settings())
    except SettingsError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    "name",
    [
        *("replay:{}", "offline,replay:{}"),
        *(
            pytest.param(name, marks=needs_integrations)
            for name in ("local:{}", "offline,local:{}")
        ),
    ],
)
def test_the_refusal_doesnt_tell_whether_a_file_exists(tmp_path: Path, name: str) -> None:
    there, missing = tmp_path / "replies.jsonl", tmp_path / "missing0.jsonl"
    there.write_text("{}")
    words = {
        refusal(name.format(path)).replace(str(path), "PATH") for path in (there, missing, tmp_path)
    }
    [said] = words
    assert "isn't a model of this workbench" in said


def test_configured_models_and_those_without_a_file_can_be_named(tmp_path: Path) -> None:
    configured = Settings(critic=f"replay:{tmp_path / 'replies.jsonl'}")
    assert refusal(f"offline,replay:{tmp_path / 'replies.jsonl'}", configured) == ""
    for name in ("offline", "replay:demo", "openai:gpt-4o", "offline,openai:gpt-4o"):
        assert refusal(name) == ""


def test_admins_and_the_owner_of_the_file_can_name_any(tmp_path: Path) -> None:
    named = Settings(verifier=f"replay:{tmp_path}")
    assert refusal(f"replay:{tmp_path}", who="admin") == ""
    assert_listed(OPEN, Actor(name="Ada"), named, Settings())
