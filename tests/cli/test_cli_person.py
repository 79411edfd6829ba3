"""``masis person``: an entry that ``masis serve --sign-in`` takes, and a secret that is shown once."""

from __future__ import annotations

from pathlib import Path

import pytest

from masis.settings.sign_in import SignIn
from tests.cli.running import Masis


def test_the_entries_make_a_sign_in_file_and_the_secret_is_shown_once(masis: Masis, tmp_path: Path) -> None:
    file, secrets = tmp_path / "people.toml", {}
    for name, role in (('Ada "the countess" Lovelace', "lead"), ("Bo", "viewer")):
        result = masis("person", name, "--role", role)
        assert result.exit_code == 0, result.output
        secrets[name] = result.stderr.rpartition(" ")[2].strip()
        assert secrets[name] not in result.stdout
        with file.open("a", encoding="utf-8") as people:
            people.write(result.stdout)
    sign_in = SignIn(file)
    for name, secret in secrets.items():
        assert sign_in.knows(name, secret)
        assert sign_in.actor(sign_in.claims_of(name)) is not None


def test_with_a_provider_the_entry_gives_the_role_only(masis: Masis) -> None:
    result = masis("person", "ada@example.org", "--role", "lead", "--no-secret")
    assert result.stdout == '[people."ada@example.org"]\nrole = "lead"\n\n'
    assert not result.stderr


@pytest.mark.parametrize("name", ["", " Ada", "acceptance policy", "a\u202eb", "a" * 81])
def test_a_name_that_nobody_can_sign_in_under_is_refused(name: str, masis: Masis) -> None:
    assert masis("person", name, "--role", "lead").exit_code == 2
