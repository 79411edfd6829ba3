"""The sign-in file: who may sign in, how, and with which role.

It has either people with a secret each, stored as a digest, or an OpenID Connect provider whose
claims (or the same list of people) give the roles. The file is read again when it has changed, so
that removed people lose access at once.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
import threading
import time
import unicodedata
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from masis.errors import MissingExtra, SettingsError
from masis.schema.actor import Actor, Role
from masis.settings.environment import read_file, secret, toml
from masis.settings.hosts import is_loopback

OIDC_SECRET = "MASIS_OIDC_CLIENT_SECRET"  # noqa: S105 (a name)
COOKIE_SECRET = "MASIS_COOKIE_SECRET"  # noqa: S105 (a name)

log = logging.getLogger(__name__)

RESERVED = frozenset(
    {
        "acceptance policy",
        "ingestion",
        "retention",
        "backup",
        "mcp",
        "langgraph",
        "masis.audited",
        "masis demo",
    }
)
"""Names that programs sign with; no person can sign in under them."""

LONGEST_NAME = 80
TEAM = "team"
"""The provider in the session of a person with a secret."""

_DIGEST = r"sha256:[0-9a-f]{64}"


class _SignInSection(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Person(_SignInSection):
    """A person who may sign in: the role, and the secret's digest if there is no provider."""

    role: Role
    secret: str | None = Field(default=None, pattern=f"^{_DIGEST}$")


class Oidc(_SignInSection):
    """An OpenID Connect provider. The client's secret comes from ``MASIS_OIDC_CLIENT_SECRET``.

    ``name_claim`` must be a unique claim that people can't choose themselves, because it is their
    name in the decision log. ``roles_claim`` may be a path into objects (``realm_access.roles``).
    """

    server_metadata_url: str
    client_id: str
    redirect_uri: str = Field(pattern=r"^https?://[^/]+/oauth2callback$")
    name_claim: str = "preferred_username"
    roles_claim: str = ""
    roles: dict[str, Role] = Field(default_factory=dict)
    label: str = "your organization"
    scope: str = "openid email profile"
    prompt: str = "select_account"


class SignInFile(_SignInSection):
    """The content of the sign-in file."""

    session_hours: float = Field(default=12.0, gt=0, le=720)
    people: dict[str, Person] = Field(default_factory=dict)
    oidc: Oidc | None = None

    @model_validator(mode="after")
    def _check_usable(self) -> SignInFile:
        for name in self.people:
            if (problem := name_problem(name)) is not None:
                raise ValueError(f"people.{name!r}: {problem}")
        if len({name.casefold() for name in self.people}) < len(self.people):
            raise ValueError("people: two names differ only in case")
        if self.oidc is None and not any(person.secret for person in self.people.values()):
            raise ValueError(
                "there is neither a provider (oidc) nor a person with a secret. Add a person with"
                " `masis person`"
            )
        if (
            self.oidc is not None
            and not (self.oidc.roles_claim and self.oidc.roles)
            and not self.people
        ):
            raise ValueError(
                "oidc: no one would get a role. Set roles_claim and roles, or list people"
            )
        return self


def name_problem(name: str) -> str | None:
    """Return why a person can't sign in under a name, or None."""
    if (
        not name
        or len(name) > LONGEST_NAME
        or " ".join(name.split()) != name
        or not name.isprintable()
    ):
        return (
            f"a name must have 1 to {LONGEST_NAME} printable characters, without spaces at its ends"
        )
    return "a program signs with this name" if is_reserved(name) else None


def is_reserved(name: str) -> bool:
    """Return whether a program signs with this name, also in other forms of its letters.

    Compatibility forms, such as full-width letters, look the same in a list of names.
    """
    return unicodedata.normalize("NFKC", name).casefold() in RESERVED


class NewSecret(NamedTuple):
    """A person's secret, and its digest for the file."""

    text: str
    digest: str


def new_secret() -> NewSecret:
    """Return a secret of 192 random bits.

    A plain digest is enough against guessing so many bits, and it's cheap to check.
    """
    text = secrets.token_urlsafe(24)
    return NewSecret(text, digest_of(text))


def digest_of(text: str) -> str:
    """Return the digest of a secret for the file."""
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


class SignIn:
    """The sign-in of one server, from its file."""

    def __init__(self, file: Path) -> None:
        """Read the file.

        Raises:
            SettingsError: The file can't be used.
            MissingExtra: Authlib is not installed.

        """
        self._file, self._lock = file, threading.Lock()
        self._content = _read_sign_in_file(file)
        self._seen = _stamp(file)
        self._ended: dict[str, float] = {}
        self._keep: Callable[[str, float], object] = lambda session, until: None
        stored_secret = secret(COOKIE_SECRET)
        # A random secret ends all sessions whenever the server starts.
        self.cookie_secret = (
            stored_secret.get_secret_value() if stored_secret else secrets.token_hex(32)
        )
        if len(self.cookie_secret) < 32:
            raise SettingsError(
                f"{COOKIE_SECRET}: has fewer than 32 characters. Leave it out, or take a random"
                " one."
            )
        self._oidc_secret = secret(OIDC_SECRET)
        if self._content.oidc is not None and not (find_spec("authlib") and find_spec("httpx")):
            raise MissingExtra(
                "Sign-in with a provider needs Authlib: pip install 'masis-workbench[auth]'"
            )
        if self._content.oidc is not None and self._oidc_secret is None:
            raise SettingsError(
                f"{file}, oidc: put the client's secret into the variable {OIDC_SECRET}."
            )

    @property
    def kind(self) -> Literal["oidc", "team"]:
        """How people sign in."""
        return "oidc" if self._content.oidc is not None else "team"

    @property
    def oidc(self) -> Oidc | None:
        """The provider, if there is one."""
        return self._content.oidc

    @property
    def session_s(self) -> float:
        """How long a session lasts, in seconds."""
        return self._current_content().session_hours * 3600

    def streamlit_secrets(self) -> dict[str, Any]:
        """Return the secrets that ``st.login`` reads."""
        section: dict[str, Any] = {"cookie_secret": self.cookie_secret}
        if (oidc := self._content.oidc) is not None and self._oidc_secret is not None:
            section |= {
                "redirect_uri": oidc.redirect_uri,
                "client_id": oidc.client_id,
                "client_secret": self._oidc_secret.get_secret_value(),
                "server_metadata_url": oidc.server_metadata_url,
                "client_kwargs": {"scope": oidc.scope, "prompt": oidc.prompt},
            }
        return {"auth": section}

    def is_secret_of(self, name: str, typed: str) -> bool:
        """Return whether this is the person's secret.

        It takes the same time for an unknown name, so that the time doesn't reveal who exists.
        """
        person = self._current_content().people.get(name)
        expected = (
            # Any digest will do for an unknown name, as long as one is compared.
            person.secret if person is not None and person.secret else digest_of(self.cookie_secret)
        )
        # compare_digest() takes the same time wherever two texts first differ.
        same = hmac.compare_digest(digest_of(typed), expected)
        return same and person is not None and person.secret is not None

    def has_person(self, name: str) -> bool:
        """Return whether the file names this person."""
        return name in self._current_content().people

    def role_of(self, name: str, recorded: Role) -> Role | None:
        """Return the role that a person has now, or None if they may no longer sign in.

        A provider tells roles only while a person signs in. A person who isn't in the file
        therefore has the role that was ``recorded`` when they last proved it.
        """
        content = self._current_content()
        person = content.people.get(name)
        if person is not None:
            return person.role
        return recorded if content.oidc is not None else None

    def claims_of(self, name: str) -> dict[str, Any]:
        """Return new claims for a person who has entered the right secret."""
        person = self._current_content().people.get(name)  # None if removed in the meantime
        session = {
            "sid": secrets.token_hex(16),
            "secret": digest_of(person.secret if person and person.secret else ""),
        }
        return {"provider": TEAM, "preferred_username": name, "iat": int(time.time()), **session}

    def load_ended_sessions(
        self, ended_at: Mapping[str, float], keep: Callable[[str, float], object]
    ) -> None:
        """Set the sessions that have ended, by digest with their expiry, and the function that
        stores further ones.
        """
        self._ended, self._keep = dict(ended_at), keep

    def end(self, claims: Mapping[str, Any]) -> None:
        """End the session of these claims, also for copies of its cookie and other tabs."""
        if self.actor(claims) is None:
            return
        until = float(claims["iat"]) + self.session_s
        # A cookie that is too old is rejected anyway, so expired entries aren't needed any more.
        # A new dictionary, because other threads may be reading the old one.
        self._ended = {session: end for session, end in self._ended.items() if end > time.time()}
        self._ended[_session_digest(claims)] = until
        self._keep(_session_digest(claims), until)

    def actor(self, claims: Mapping[str, Any], now: float | None = None) -> Actor | None:
        """Return the actor who signed in with these claims, or None if they are invalid or the
        session is over.

        A person without a role is returned without roles: they have signed in but may do nothing.
        """
        content = self._current_content()
        issued_at = claims.get("iat")
        # bool is a subclass of int
        if isinstance(issued_at, bool) or not isinstance(issued_at, int | float):
            return None
        age = (time.time() if now is None else now) - issued_at
        # Allow for clocks of provider and server that differ by up to five minutes.
        if not -300 <= age <= content.session_hours * 3600:
            return None
        if _session_digest(claims) in self._ended:
            return None
        oidc = content.oidc
        # The session is older than a change of the file from one kind of sign-in to the other.
        if (claims.get("provider") == TEAM) is (oidc is not None):
            return None
        name = claims.get(oidc.name_claim if oidc else "preferred_username")
        if not isinstance(name, str) or name_problem(name) is not None:
            return None
        person = content.people.get(name)
        if oidc is None:
            if (
                person is None
                or person.secret is None
                # The cookie contains a digest of the person's secret, so that a new secret ends all
                # sessions that were started with the old one.
                or claims.get("secret") != digest_of(person.secret)
            ):
                return None
            return Actor(name=name, roles=(person.role,), authenticated=True, signed_in_by=TEAM)
        roles = {
            oidc.roles[value]
            for value in _claim_values(claims, oidc.roles_claim)
            if value in oidc.roles
        }
        if person is not None:
            roles.add(person.role)
        by = f"{claims.get('iss', '')}#{claims.get('sub', '')}"
        return Actor(name=name, roles=tuple(sorted(roles)), authenticated=True, signed_in_by=by)

    def _current_content(self) -> SignInFile:
        """Return the file's content, read again if it has changed; if it can't be read, no one can
        sign in.
        """
        with self._lock:
            if (stamp := _stamp(self._file)) != self._seen:
                try:
                    self._content = _read_sign_in_file(self._file)
                except SettingsError as error:
                    log.error("Nobody can sign in until the sign-in file can be read: %s", error)
                    self._content = self._content.model_copy(
                        # A session this short has ended before it is checked.
                        update={"people": {}, "session_hours": 1e-9}
                    )
                self._seen = stamp
            return self._content


def _session_digest(claims: Mapping[str, Any]) -> str:
    """Return a digest that identifies a session: provider, subject, times, and the session's id if
    it has one.
    """
    named_values = [
        str(claims.get(name))
        for name in ("provider", "iss", "sub", "preferred_username", "iat", "exp", "sid")
    ]
    return hashlib.sha256("\n".join(named_values).encode()).hexdigest()


def _claim_values(claims: Mapping[str, Any], path: str) -> list[str]:
    """Return the texts at a path into objects, such as ``realm_access.roles``."""
    value: Any = claims
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    values = value if isinstance(value, list | tuple) else [value]
    return [text for text in values if isinstance(text, str)]


def _stamp(file: Path) -> tuple[int, int] | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _read_sign_in_file(file: Path) -> SignInFile:
    try:
        content = SignInFile.model_validate(toml(read_file(file, "--sign-in"), file))
    except ValidationError as error:
        lines = [
            f"{'.'.join(map(str, problem['loc'])) or 'the file'}: {problem['msg']}"
            for problem in error.errors()
        ]
        raise SettingsError(f"{file}: " + "; ".join(lines)) from None
    oidc = content.oidc
    for address in (oidc.server_metadata_url, oidc.redirect_uri) if oidc else ():
        parts = urlsplit(address)
        if parts.scheme != "https" and not (
            parts.scheme == "http" and is_loopback(parts.hostname or "")
        ):
            raise SettingsError(
                f"{file}, oidc: {address} must be an https address, or one of this machine."
            )
    return content
