"""Every error a person may meet, as one tree.

    MasisError
    ├── InputError             a file, a line or a field of it is wrong: says which, and the hint
    ├── SettingsError          a setting is unknown or out of range
    │   ├── MissingKey         a provider's key is neither in the environment nor in the secrets file
    │   └── MissingModel       a model's files are not on this machine yet
    ├── StoreError
    │   ├── NewerDatabase      the file was written by a later version
    │   ├── OtherSchema        the file was made by a development version before the first release
    │   ├── NotADatabase       the file is something else
    │   ├── UnguardedLog       an append-only table has lost its guard
    │   ├── DatabaseBusy       another program has held the lock for too long
    │   ├── DatabaseDamaged    the file is damaged, or no database any more
    │   ├── DatabaseFull       its disk has no room left
    │   ├── DatabaseReadOnly   file or folder can't be written
    │   ├── DatabaseMissing    the file was moved, removed or replaced while in use
    │   ├── DiskFailed         its disk could not be read or written
    │   ├── RecordDamaged      what is stored of one run or screening can't be read
    │   ├── CaseConflict       the id is taken by a case with other content
    │   ├── UnknownRecord      no case, run or decision has that id
    │   ├── Removed            retention has removed the content of a run or screening
    │   ├── CaseHeld           another reviewer has taken the case for decision
    │   └── StaleVersion       what a person looked at has changed since
    ├── NotAllowed             whoever asks has not signed in, or has no role that grants it
    ├── RetrievalFailed        a source of abstracts can't be asked, or its reply can't be read
    ├── MissingExtra           an optional package is not installed
    ├── SpendingLimit          what calls to models may cost has been spent
    ├── AnswerRejected         an audited answer was flagged, and whoever asked for it wants none such
    └── StepError              a step of the audit failed; ``code`` is one of CRITIC-ERR-001..006
        ├── CriticFailed       CRITIC-ERR-001
        ├── ReviserFailed      CRITIC-ERR-002
        ├── ProviderFailed     CRITIC-ERR-003
        │   └── ContextFull    question and evidence don't fit the model's context
        ├── BadReply           a reply refused, cut off, empty or malformed; the roles give it their code
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
"""What a service that serves audits over HTTP answers with, by code (CRITIC-ERR-HTTP)."""


class MasisError(Exception):
    """Something a person can act on went wrong; the message says what, to what, and what to do.

    ``http_status`` is what a service answers with over HTTP.
    """

    http_status: ClassVar[int] = 500

    @property
    def about(self) -> dict[str, Any]:
        """What a program can act on, for integrations: kind, CRITIC-ERR code, status over HTTP."""
        return {"kind": type(self).__name__, "http_status": self.http_status}


class InputError(MasisError):
    """A value that came from outside is wrong.

    ``str(error)`` reads ``cases.jsonl, line 3, evidence[2].id: is used twice (...). Give each chunk
    an id of its own.`` ``limit`` names the limit that it passes, where it does
    (``masis/schema/limits.py``).
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
        """The same error with the place in the file filled in."""
        place = {"file": file or self.file, "line": line or self.line, "field": self.field}
        return InputError(self.problem, hint=self.hint, limit=self.limit, **place)  # type: ignore[arg-type]

    @classmethod
    def of_all(
        cls, errors: Sequence[InputError], *, hint: str, file: str | None = None
    ) -> InputError:
        """Return one error for several: itself where it is one, else their number and the first
        five.

        What one of them says in the words of one before it is said once.
        """
        if len(errors) == 1:
            return errors[0]
        earlier, parts = list[str](), list[str]()
        for each in errors[:5]:
            whole, rest = str(each).rstrip("."), f"{each.problem}. {each.hint}".rstrip(".")
            again = any(words.startswith(rest) for words in earlier)
            parts.append(f"{whole.removesuffix(rest)}the same" if again else whole)
            earlier.append(rest)
        shown = "; ".join(parts)
        return cls(
            f"{len(errors):,} problems: {shown}{'; and more' if len(errors) > 5 else ''}",
            hint=hint,
            file=file,
        )


class SettingsError(MasisError):
    """A setting is unknown, of the wrong type or out of its range."""


class MissingKey(SettingsError):
    """A model is named whose provider wants a key, and there is none; the settings themselves are
    in order.
    """


class MissingModel(SettingsError):
    """A model is named whose files are not on this machine yet; the settings themselves are in
    order.
    """


class StoreError(MasisError):
    """The database can't do what was asked."""


class NewerDatabase(StoreError):
    """The database was written by a later version of the workbench than this one."""


class OtherSchema(StoreError):
    """The database was made by a development version with another schema, which no version reads
    but that one.
    """


class NotADatabase(StoreError):
    """The file is no database of the workbench."""


class UnguardedLog(StoreError):
    """A table that only grows has lost the triggers that guard it."""


class DatabaseBusy(StoreError):
    """Another program has held the database, or every connection to it was in use, for too long."""

    http_status = 503


class DatabaseDamaged(StoreError):
    """The file of the database is damaged, or no database any more."""


class DatabaseFull(StoreError):
    """The disk that the database is stored on has no room left."""

    http_status = 507


class DatabaseReadOnly(StoreError):
    """The file of the database, or its folder, can't be written."""


class DatabaseMissing(StoreError):
    """The file of the database was moved, removed or replaced while it was in use."""


class DiskFailed(StoreError):
    """The disk that the database is stored on could not be read or written."""


class RecordDamaged(StoreError):
    """What is stored of one run or screening is damaged or was altered; the rest of the database
    can be read.
    """


class CaseConflict(StoreError):
    """The id belongs to a case with other content; decisions refer to it, so it is not replaced."""

    http_status = 409


class UnknownRecord(StoreError):
    """No case, run or decision has that id."""

    http_status = 404


class Removed(StoreError):
    """Retention or a redaction has removed the content of a run or screening; its figures are still
    there.
    """

    http_status = 410


class StaleVersion(StoreError):
    """The record changed between being shown and being acted on."""

    http_status = 409


class AnotherAnswer(StaleVersion):
    """The answer that a decision names is not the one that its reviewer was shown."""


class CaseHeld(StoreError):
    """Another reviewer has taken the case for decision; ``by`` names them, ``until`` is when their
    lease ends.
    """

    http_status = 409

    def __init__(self, message: str, *, by: str = "", until: str = "") -> None:
        self.by, self.until = by, until
        super().__init__(message)


class NotAllowed(MasisError):
    """Whoever asks has not signed in, or holds no role that grants what was asked."""

    http_status = 403


class RetrievalFailed(MasisError):
    """A source of abstracts can't be asked, or what it replied can't be read."""

    http_status = 502


class MissingExtra(MasisError):
    """An optional package is needed; the message names the extra that installs it."""

    http_status = 501


class SpendingLimit(MasisError):
    """What calls to models may cost has been spent, or can't be known."""

    http_status = 402


class AnswerRejected(MasisError):
    """An answer was audited and flagged; ``audit`` is what was found
    (``masis.pipeline.Audited``).
    """

    def __init__(self, message: str, *, audit: object = None) -> None:
        self.audit = audit
        super().__init__(message)


class StepError(MasisError):
    """A step of the audit failed (CRITIC-ERR-001 to CRITIC-ERR-006)."""

    code: ClassVar[str] = "CRITIC-ERR-001"

    def __init_subclass__(cls) -> None:
        """The status follows the code."""
        cls.http_status = HTTP_STATUS[cls.code]

    def __init__(self, message: str, *, raw: str | None = None) -> None:
        self.raw = raw
        super().__init__(message)

    @property
    def about(self) -> dict[str, Any]:
        """As for every error, with its code."""
        return super().about | {"code": self.code}


class BadReply(StepError):
    """A model replied, but not with what was asked for; ``raw`` is the unchanged reply, cut to a
    size fit to keep.

    Roles turn it into the code of their step: the specs number an invalid critique and an invalid
    revision.
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
    """Question and evidence don't fit the model's context, or leave too little of it
    for the reply.
    """


class InvalidCritique(StepError):
    """The critic's reply does not have the form of a critique."""

    code = "CRITIC-ERR-005"


class InvalidRevision(StepError):
    """The reviser's reply does not have the form of a revision."""

    code = "CRITIC-ERR-006"
