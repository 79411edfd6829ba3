"""Permissions: the check that each use case makes, and the table of all acts.

A use case declares its permission with ``@requires``, which checks the actor and adds the use case
to ``ACTS``. The table in docs/security.md and the tests of every use case are made from ``ACTS``.

A command acts for the owner of the database file and may do everything. A server with sign-in opens
its workbench with ``SIGN_IN_REQUIRED``. A use case then rejects actors who haven't signed in with a
role that allows it, whichever page, callback or message called it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Concatenate, Literal, NamedTuple, ParamSpec, Protocol, TypeVar

from masis.errors import NotAllowed
from masis.extensions import extensions
from masis.schema.actor import PERMISSIONS, Actor, Permission
from masis.store import Store

_GENERAL: dict[Permission, str] = {
    "read": "see pages, figures and reports",
    "decide": "decide",
    "audit": "add cases or start audits",
    "export": "export",
    "oversee": "change what others decided or what is learned from it",
    "redact": "redact",
    "purge": "remove what retention stores",
    "configure": "change settings",
}
"""What each permission allows, for checks that don't name an act."""


class Access(NamedTuple):
    """The access rule of one workbench; ``sign_in`` says whether people must sign in."""

    sign_in: bool

    def allows(self, actor: Actor, permission: Permission) -> bool:
        """Return whether the actor has the permission."""
        return not self.sign_in or actor.may(permission)

    def require(self, actor: Actor, permission: Permission, act: str = "") -> None:
        """Raise NotAllowed unless the actor has the permission.

        ``act`` says in the error what isn't allowed, as in "You can't export screenings."
        """
        if self.allows(actor, permission):
            return
        act = act or _GENERAL[permission]
        if not actor.authenticated:
            raise NotAllowed(f"You can't {act}. Sign in first.")
        raise NotAllowed(
            f"You can't {act}. You need the {PERMISSIONS[permission]} role. Your roles:"
            f" {', '.join(actor.roles) or 'none'}. Ask an admin of this workbench."
        )


OPEN = Access(sign_in=False)
"""Without sign-in, everyone who can reach the workbench may do everything."""

SIGN_IN_REQUIRED = Access(sign_in=True)


class Service:
    """The use cases of one subject on one database; ``access`` checks permissions."""

    def __init__(self, store: Store, access: Access = OPEN) -> None:
        self._store, self.access = store, access


Need = Permission | Literal["nothing", "token", "file"]
"""What an act needs: a permission, nothing, a program's token, or the database file itself."""

Kind = Literal["use case", "page", "address", "API", "ingestion", "tool", "command"]
"""Where an act is done: by a use case, on a page, at an address of the workbench, of its API or of
ingestion, by a tool of the MCP server, or by a command."""


RUN_AUDITS = "start or stop audits"
ADD_CASES = "add or import cases"
"""Acts of several services."""


class Act(NamedTuple):
    """An act, what it needs, and the places of one kind where it's done.

    A use case has its qualified name (``ReviewService.submit``), and an address its method and path
    (``GET /healthz``), or a name if it's one of Streamlit's.
    """

    requires: Need
    words: str
    kind: Kind
    names: tuple[str, ...]


class _HasAccess(Protocol):
    @property
    def access(self) -> Access: ...


S = TypeVar("S", bound=_HasAccess)
P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])


def requires(
    permission: Permission, act: str = ""
) -> Callable[[Callable[Concatenate[S, Actor, P], R]], Callable[Concatenate[S, Actor, P], R]]:
    """Declare that a use case, a method whose first argument is the actor, requires a permission.

    Args:
        permission: The permission that is checked before each call.
        act: The act in the table and in the error, as an infinitive: "export screenings". By
            default the act that the permission is named for.

    Example::

        @requires("export", "export screenings")
        def export(self, actor: Actor, screening_id: str) -> bytes: ...

    """

    def decorate(
        use_case: Callable[Concatenate[S, Actor, P], R],
    ) -> Callable[Concatenate[S, Actor, P], R]:
        @functools.wraps(use_case)
        def checked(self: S, actor: Actor, /, *args: P.args, **kwargs: P.kwargs) -> R:
            self.access.require(actor, permission, act)
            return use_case(self, actor, *args, **kwargs)

        # functools.wraps has copied __qualname__, by which the table names the use case.
        return may_require(permission, act or _GENERAL[permission])(checked)

    return decorate


def may_require(permission: Permission, act: str) -> Callable[[F], F]:
    """Declare that a use case also requires a permission for some calls.

    It checks the permission itself. The declaration only adds the act to the generated table.
    """

    def decorate(use_case: F) -> F:
        ACTS.append(Act(permission, act, "use case", (use_case.__qualname__,)))
        return use_case

    return decorate


ACTS: list[Act] = [
    Act("nothing", "sign in", "address", ("GET /sign-in", "POST /sign-in")),
    Act(
        "nothing",
        "check the health of the server",
        "address",
        ("GET /healthz", "GET /health.json", "liveness"),
    ),
    Act(
        "read",
        _GENERAL["read"],
        "page",
        (
            "overview",
            "queue",
            "review",
            "new",
            "import",
            "compare",
            "decisions",
            "team",
            "metrics",
            "modes",
            "trust",
            "judge",
            "settings",
            "health",
            "datasets",
            "retention",
            "preference",
            *(page.address for extension in extensions() for page in extension.pages),
        ),
    ),
    Act(
        "read",
        _GENERAL["read"],
        "address",
        ("media", "static", "configuration", "websocket"),
    ),
    Act("audit", "upload files", "address", ("upload", "removal of an upload")),
    # These buttons don't call a use case, so their callbacks check ``Access`` themselves.
    Act("audit", "test models", "page", ()),
    Act("configure", "download models", "page", ()),
    Act(
        "nothing",
        "check that ingestion runs, and read its description",
        "ingestion",
        ("GET /healthz", "GET /v1/openapi.json"),
    ),
    Act(
        "token",
        "send cases and read the status of its own cases",
        "ingestion",
        ("POST /v1/cases", "POST /v1/traces", "GET /v1/cases/{id:path}", "GET /v1/batches/{id}"),
    ),
    Act(
        "token",
        "read cases, audits and the queue as an agent; audit, but never decide",
        "tool",
        (
            "critique_answer",
            "audit_citations",
            "verify_claims",
            "run_audit",
            "get_run",
            "get_case",
            "list_queue",
            "search_evidence",
        ),
    ),
    Act(
        "file",
        "decide under a reviewer's name, and see the same as that reviewer",
        "command",
        (
            *("queue", "queues", "show", "decide", "label", "batch", "minimal", "comment"),
            *("undo", "log", "preference"),
        ),
    ),
    Act(
        "file",
        "run all other commands",
        "command",
        (
            "demo",
            "serve",
            "config",
            "completion",
            "audit",
            "bench",
            "models",
            "report",
            "metrics",
            "trust",
            "modes",
            "judge",
            "systems",
            "compare",
            "planted",
            "import",
            "export",
            "dataset",
            "ingest",
            "person",
            "token",
            "health",
            "verify-log",
            "purge",
            "db",
            *(command.name for extension in extensions() for command in extension.commands),
        ),
    ),
]
"""All acts: those done outside of use cases, and each use case that ``@requires`` has added.

A test fails for each page, address, tool, command and use case without a row, and for each row
whose permission isn't the one that is checked there (``tests/services/test_access.py``,
``tests/ui/test_rights.py``).
"""
