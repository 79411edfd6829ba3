"""The sign-in file: who may sign in, with which role, and for how long."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from masis.errors import SettingsError
from masis.settings.sign_in import COOKIE_SECRET, OIDC_SECRET, SignIn, new_secret

ADA, BO = new_secret(), new_secret()
TEAM = f"""
session_hours = 2
[people."Ada Lovelace"]
role = "lead"
secret = "{ADA.digest}"
[people.Bo]
role = "reviewer"
secret = "{BO.digest}"
"""
OIDC = """
[oidc]
server_metadata_url = "https://id.example.org/.well-known/openid-configuration"
client_id = "masis"
redirect_uri = "https://audits.example.org/oauth2callback"
roles_claim = "realm_access.roles"
roles = { masis-reviewer = "reviewer", masis-admin = "admin" }
[people."ada@example.org"]
role = "lead"
"""
NOW = 1_800_000_000.0


@pytest.fixture
def team(tmp_path: Path) -> SignIn:
    file = tmp_path / "people.toml"
    file.write_text(TEAM, encoding="utf-8")
    return SignIn(file)


@pytest.fixture
def provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SignIn:
    monkeypatch.setenv(OIDC_SECRET, "the client's")
    file = tmp_path / "oidc.toml"
    file.write_text(OIDC, encoding="utf-8")
    return SignIn(file)


def test_each_person_has_their_own_secret(team: SignIn) -> None:
    assert team.is_secret_of("Ada Lovelace", ADA.text)
    assert team.is_secret_of("Bo", BO.text)
    for name, typed in (
        ("Bo", ADA.text),
        ("bo", BO.text),
        ("Bo", ""),
        ("Cy", BO.text),
        ("Bo", BO.digest),
        ("", ""),
    ):
        assert not team.is_secret_of(name, typed)
    # what stands in for the secret of nobody is no secret
    assert not team.is_secret_of("Cy", team.cookie_secret)


def test_a_session_has_the_files_role_and_expires(team: SignIn) -> None:
    claims = team.claims_of("Ada Lovelace")
    actor = team.actor(claims)
    assert (actor.name, actor.roles, actor.authenticated) == ("Ada Lovelace", ("lead",), True)
    assert team.actor(claims, now=claims["iat"] + 2 * 3600 - 1) is not None
    assert team.actor(claims, now=claims["iat"] + 2 * 3600 + 1) is None
    assert team.actor(claims, now=claims["iat"] - 3600) is None
    assert team.actor({}) is None


def test_removed_people_lose_access_at_once_and_a_broken_file_denies_all(
    team: SignIn, tmp_path: Path
) -> None:
    file, claims = tmp_path / "people.toml", team.claims_of("Bo")
    assert team.actor(claims) is not None
    file.write_text(TEAM.replace("reviewer", "viewer"), encoding="utf-8")
    change_time(file, 1)
    actor = team.actor(claims)
    assert actor.roles == ("viewer",)
    file.write_text(TEAM.replace("people.Bo", "people.Cy"), encoding="utf-8")
    change_time(file, 2)
    assert team.actor(claims) is None
    file.write_text(TEAM + "[", encoding="utf-8")
    change_time(file, 3)
    assert team.actor(team.claims_of("Ada Lovelace")) is None
    file.unlink()
    assert team.actor(team.claims_of("Ada Lovelace")) is None


def change_time(file: Path, seconds: int) -> None:
    """Give the file another time than before, however coarse the file system's clock."""
    os.utime(file, (NOW + seconds, NOW + seconds))


def claims(**more: Any) -> dict[str, Any]:
    given = {"iat": NOW, "iss": "https://id.example.org", "sub": "7", "provider": "default"}
    return {**given, "preferred_username": "bo@example.org", **more}


def test_a_providers_claims_set_the_role(provider: SignIn) -> None:
    actor = provider.actor(claims(realm_access={"roles": ["masis-reviewer", "other"]}), NOW)
    assert (actor.name, actor.roles) == ("bo@example.org", ("reviewer",))
    assert actor.signed_in_by == "https://id.example.org#7"
    ada = provider.actor(claims(preferred_username="ada@example.org"), NOW)
    assert ada.roles == ("lead",)
    stranger = provider.actor(claims(realm_access={"roles": "masis-owner"}), NOW)
    assert stranger.roles == ()
    assert not stranger.may("read")


@pytest.mark.parametrize(
    "wrong",
    [
        *({"preferred_username": None}, {"preferred_username": ["bo"]}, {"preferred_username": ""}),
        *(
            {"preferred_username": "Acceptance Policy"},
            {"preferred_username": "a\u202eb"},
            {"preferred_username": "a" * 99},
        ),
        *(
            {"iat": None},
            {"iat": True},
            {"iat": "1800000000"},
            {"iat": float("nan")},
            {"iat": NOW + 9999},
        ),
        {"provider": "team"},
    ],
)
def test_claims_without_a_name_are_rejected(wrong: dict[str, Any], provider: SignIn) -> None:
    assert provider.actor(claims(**wrong), NOW) is None


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "neither a provider"),
        ('[people.Bo]\nrole = "reviewer"', "neither a provider"),
        (TEAM.replace('"reviewer"', '"owner"'), "people.Bo.role"),
        (TEAM.replace(BO.digest, "swordfish"), "people.Bo.secret"),
        (TEAM + '[people.bo]\nrole = "viewer"', "differ only in case"),
        (TEAM.replace("people.Bo", 'people." Bo"'), "spaces at its ends"),
        (TEAM.replace("people.Bo", 'people."acceptance policy"'), "a program signs with this name"),
        ("nonsense = 1\n" + TEAM, "nonsense"),
        (OIDC.replace("https://id.example.org", "http://id.example.org"), "https address"),
        (OIDC.replace("/oauth2callback", "/callback"), "redirect_uri"),
        (
            OIDC.partition("[people")[0].replace("roles_claim", "name_claim"),
            "no one would get a role",
        ),
    ],
)
def test_an_invalid_sign_in_file_is_rejected_with_its_line(
    content: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(OIDC_SECRET, "the client's")
    file = tmp_path / "people.toml"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(SettingsError, match=problem) as caught:
        SignIn(file)
    assert "swordfish" not in str(caught.value)


def test_secrets_are_read_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "oidc.toml"
    file.write_text(OIDC, encoding="utf-8")
    with pytest.raises(SettingsError, match=OIDC_SECRET):
        SignIn(file)
    monkeypatch.setenv(OIDC_SECRET, "the client's")
    monkeypatch.setenv(COOKIE_SECRET, "short")
    with pytest.raises(SettingsError, match=COOKIE_SECRET):
        SignIn(file)
    monkeypatch.setenv(COOKIE_SECRET, "x" * 40)
    section = SignIn(file).streamlit_secrets()["auth"]
    assert (section["cookie_secret"], section["client_secret"]) == ("x" * 40, "the client's")


def test_an_ended_session_stays_ended_after_a_restart(team: SignIn, tmp_path: Path) -> None:
    kept: dict[str, float] = {}
    team.load_ended_sessions({}, kept.__setitem__)
    ended, other = team.claims_of("Bo"), team.claims_of("Bo")
    team.end(ended)
    assert team.actor(ended) is None
    assert team.actor(other) is not None
    again = SignIn(tmp_path / "people.toml")
    assert again.actor(ended) is not None
    again.load_ended_sessions(kept, kept.__setitem__)
    assert again.actor(ended) is None
    assert again.actor(other) is not None


def test_a_providers_session_can_be_ended(provider: SignIn) -> None:
    now = {"iat": int(time.time())}
    provider.end(claims(**now, realm_access={"roles": ["masis-reviewer"]}))
    assert provider.actor(claims(**now)) is None
    assert provider.actor(claims(**now, sub="8")) is not None


def test_a_new_secret_ends_old_sessions(team: SignIn, tmp_path: Path) -> None:
    file, before = tmp_path / "people.toml", team.claims_of("Bo")
    file.write_text(TEAM.replace(BO.digest, new_secret().digest), encoding="utf-8")
    change_time(file, 1)
    assert team.actor(before) is None
    assert team.actor(team.claims_of("Bo")) is not None
