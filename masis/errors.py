"""Every error that a person may meet, as one tree.

    MasisError
    ├── InputError             a file, a line or a field is wrong; the message says which
    ├── SettingsError          a setting is unknown or out of range
    │   ├── MissingKey         a provider's key is in neither the environment nor the secrets file
    │   └── MissingModel       a model's files are not on this machine yet
    ├── StoreError
    │   ├── NewerDatabase      a later version wrote the file
    │   ├── OtherSchema        a development version before the first release made the file
    │   ├── NotADatabase       the file is something else
    │   ├── UnguardedLog       an append-only table has lost its triggers
    │   ├── DatabaseBusy       another program has held the lock for too long
    │   ├── DatabaseDamaged    the file is damaged, or no longer a database
    │   ├── DatabaseFull       its disk is full
    │   ├── DatabaseReadOnly   the file or its folder can't be written
    │   ├── DatabaseMissing    the file was moved, removed or replaced while in use
    │   ├── DiskFailed         its disk can't be read or written
    │   ├── RecordDamaged      the stored record of one run or screening can't be read
    │   ├── Conflict               the record's state doesn't allow it, such as a second undo
    │   ├── CaseConflict       another case with different content has this id
    │   ├── UnknownRecord      no case, run or decision has that id
    │   ├── Removed            retention has removed the content of a run or screening
    │   ├── CaseHeld           another reviewer holds the lease on the case
    │   └── StaleVersion       the record has changed since it was shown
    ├── NotAllowed             the caller hasn't signed in, or lacks a role that grants the action
    │   └── ResultsHidden      a policy hides an audit's results until the reviewer decides
    ├── RetrievalFailed        a source of abstracts can't be asked, or its reply can't be read
    ├── ServerUnreachable      a workbench's server can't be reached, or its answer can't be read
    ├── MissingExtra           an optional package is not installed
    ├── SpendingLimit          the spending limit for model calls is reached
    ├── AnswerRejected         an audited answer was flagged, and the caller asked to reject those
    └── StepError              a step of the audit failed; ``code`` is one of CRITIC-ERR-001..006
        ├── CriticFailed       CRITIC-ERR-001
        ├── ReviserFailed      CRITIC-ERR-002
        ├── ProviderFailed     CRITIC-ERR-003
        │   └── ContextFull    question and evidence don't fit the model's context
        ├── BadReply           a reply is refused, cut off, empty or malformed; roles add their code
        ├── InvalidCritique    CRITIC-ERR-005
        └── InvalidRevision    CRITIC-ERR-006

CRITIC-ERR-004 (the limit of iterations without convergence) is a warning on the run, not an
exception (CRITIC-ERR-004).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

MAX_ITERATIONS_WARNING = "CRITIC-ERR-004"

HTTP_STATUS = {
    "CRITIC-ERR-001": 500,
    "CRITIC-ERR-002": 500,
    "CRITIC-ERR-003": 502,
    MAX_ITERATIONS_WARNING: 200,
    "CRITIC-ERR-005": 500,
    "CRITIC-ERR-006": 500,
}
"""HTTP status by error code, for services that serve audits over HTTP (CRITIC-ERR-HTTP)."""


class MasisError(Exception):
    """An error that a person can act on; the message says what went wrong, where, and what to do.

    ``http_status`` is the status that a service responds with over HTTP.
    """

    http_status: ClassVar[int] = 500

    @property
    def about(self) -> dict[str, Any]:
        """Details for programs: the kind, the HTTP status and the CRITIC-ERR code, if any."""
        return {"kind": type(self).__name__, "http_status": self.http_status}


class InputError(MasisError):
    """A value from outside the program is wrong.

    ``str(error)`` reads ``cases.jsonl, line 3, evidence[2].id: is used twice (...). Give each chunk
    an id of its own.``

    Attributes:
        problem: What is wrong with the value.
        hint: What to do about it.
        file: The file that holds the value, if any.
        line: The line in the file, from 1.
        field: The field of the record.
        limit: The limit that the value exceeds (``masis/schema/limits.py``), if it exceeds one.

    """

    http_status = 400

    def __init__(
        self,
        problem: str,
        *,
        hint: str,
        file: str | None = None,
        line: int | None = None,
        field: str | None = None,
        limit: str | None = None,
    ) -> None:
        self.problem, self.hint, self.file, self.line, self.field = problem, hint, file, line, field
        self.limit = limit
        super().__init__(str(self))

    def __str__(self) -> str:
        place = ", ".join(
            part
            for part in (self.file, f"line {self.line}" if self.line else None, self.field)
            if part is not None
        )
        problem = self.problem.rstrip(".")
        return f"{place}: {problem}. {self.hint}" if place else f"{problem}. {self.hint}"

    def at(self, *, file: str | None = None, line: int | None = None) -> InputError:
        """Return the same error with its place in the file filled in."""
        return InputError(
            self.problem,
            hint=self.hint,
            file=file or self.file,
            line=line or self.line,
            field=self.field,
            limit=self.limit,
        )

    @classmethod
    def of_all(
        cls, errors: Sequence[InputError], *, hint: str, file: str | None = None
    ) -> InputError:
        """Return one error that reports several: their number and the first five.

        A single error is returned unchanged. A message that repeats an earlier one is shortened to
        "the same".
        """
        if len(errors) == 1:
            return errors[0]
        earlier, parts = list[str](), list[str]()
        for error in errors[:5]:
            message = str(error).rstrip(".")
            without_place = f"{error.problem}. {error.hint}".rstrip(".")
            is_repeated = any(text.startswith(without_place) for text in earlier)
            place = message.removesuffix(without_place)
            parts.append(f"{place}the same" if is_repeated else message)
            earlier.append(without_place)
        shown = "; ".join(parts)
        return cls(
            f"{len(errors):,} problems: {shown}{'; and more' if len(errors) > 5 else ''}",
            hint=hint,
            file=file,
        )


class SettingsError(MasisError):
    """A setting is unknown, of the wrong type or out of its range."""


class MissingKey(SettingsError):
    """The provider of a model needs a key and none is set; the settings themselves are valid."""


class MissingModel(SettingsError):
    """A model's files are not on this machine yet; the settings themselves are valid."""


class StoreError(MasisError):
    """The database can't do what was asked."""


class NewerDatabase(StoreError):
    """The database was written by a later version of the workbench than this one."""


class OtherSchema(StoreError):
    """A development version with another schema made the database; only it can read it."""


class NotADatabase(StoreError):
    """The file is not a database of the workbench."""


class UnguardedLog(StoreError):
    """An append-only table has lost the triggers that protect it."""


class DatabaseBusy(StoreError):
    """Another program has held the database, or every connection to it was in use, for too long."""

    http_status = 503


class DatabaseDamaged(StoreError):
    """The database file is damaged, or is no longer a database."""


class DatabaseFull(StoreError):
    """The disk that holds the database is full."""

    http_status = 507


class DatabaseReadOnly(StoreError):
    """The database file, or its folder, can't be written."""


class DatabaseMissing(StoreError):
    """The database file was moved, removed or replaced while it was in use."""


class DiskFailed(StoreError):
    """The disk that holds the database can't be read or written."""


class RecordDamaged(StoreError):
    """The stored record of one run or screening is damaged or was altered; the rest can be read."""


class Conflict(StoreError):
    """The state of a case, an entry or a run doesn't allow what was asked."""

    http_status = 409


class CaseConflict(StoreError):
    """Another case has the id ``case``. Decisions refer to that case, so it isn't replaced."""

    http_status = 409

    def __init__(self, message: str, *, case: str = "") -> None:
        self.case = case
        super().__init__(message)


class UnknownRecord(StoreError):
    """No case, run or decision has that id."""

    http_status = 404


class Removed(StoreError):
    """Retention or a redaction removed the content of a run or screening; its figures remain."""

    http_status = 410


class StaleVersion(StoreError):
    """The record changed between being shown and being acted on."""

    http_status = 409


class AnotherAnswer(StaleVersion):
    """A decision names another answer than the one its reviewer was shown."""


class CaseHeld(StoreError):
    """Another reviewer holds the lease on the case.

    ``by`` names the reviewer and ``until`` is when the lease ends.
    """

    http_status = 409

    def __init__(self, message: str, *, by: str = "", until: str = "") -> None:
        self.by, self.until = by, until
        super().__init__(message)


class NotAllowed(MasisError):
    """The caller hasn't signed in, or lacks a role that grants the action."""

    http_status = 403


class ResultsHidden(NotAllowed):
    """The team's policy hides an audit's results from the reviewer until they decide the case."""


class RetrievalFailed(MasisError):
    """A source of abstracts can't be asked, or its reply can't be read."""

    http_status = 502


class ServerUnreachable(MasisError):
    """A workbench's server can't be reached, or its answer can't be read."""

    http_status = 502


class MissingExtra(MasisError):
    """An optional package is needed; the message names the extra that installs it."""

    http_status = 501


class SpendingLimit(MasisError):
    """The spending limit for model calls is reached, or the amount spent can't be known."""

    http_status = 402


class AnswerRejected(MasisError):
    """An audited answer was flagged; ``audit`` is the result (``masis.pipeline.Audited``)."""

    def __init__(self, message: str, *, audit: object = None) -> None:
        self.audit = audit
        super().__init__(message)


class StepError(MasisError):
    """A step of the audit failed (CRITIC-ERR-001 to CRITIC-ERR-006)."""

    code: ClassVar[str] = "CRITIC-ERR-001"

    def __init_subclass__(cls) -> None:
        """Set the HTTP status from the code."""
        cls.http_status = HTTP_STATUS[cls.code]

    def __init__(self, message: str, *, raw: str | None = None) -> None:
        self.raw = raw
        super().__init__(message)

    @property
    def about(self) -> dict[str, Any]:
        """The details of every error, and the code."""
        return super().about | {"code": self.code}


class BadReply(StepError):
    """A model replied, but not with what it was asked for.

    ``raw`` is the unchanged reply, cut to a size fit to store. Roles convert the error to the code
    of their step, because the specs number an invalid critique and an invalid revision.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: Literal["refused", "cut_off", "empty", "malformed"],
        raw: str | None = None,
    ) -> None:
        self.kind: Literal["refused", "cut_off", "empty", "malformed"] = kind
        super().__init__(message, raw=raw)


class CriticFailed(StepError):
    """The critic could not give a critique."""

    code = "CRITIC-ERR-001"


class ReviserFailed(StepError):
    """The reviser could not give a revision."""

    code = "CRITIC-ERR-002"


class ProviderFailed(StepError):
    """The language model could not be reached or refused to work."""

    code = "CRITIC-ERR-003"


class ContextFull(ProviderFailed):
    """Question and evidence leave too little of the model's context for the reply."""


class InvalidCritique(StepError):
    """The critic's reply does not have the form of a critique."""

    code = "CRITIC-ERR-005"


class InvalidRevision(StepError):
    """The reviser's reply does not have the form of a revision."""

    code = "CRITIC-ERR-006"
