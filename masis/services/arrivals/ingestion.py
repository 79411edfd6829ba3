"""Ingestion: receive cases from programs, select the ones to queue, and report the results."""

from __future__ import annotations

import hashlib
import io
import logging
import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import Field, JsonValue, ValidationError, field_validator

from masis.api.roles import check_models
from masis.datasets.mapping.profile import OWN_FORMAT, import_profiles
from masis.datasets.mapping.reader import read_any
from masis.datasets.readers.strict_json import parse_object
from masis.errors import InputError, MasisError, SettingsError
from masis.schema import limits
from masis.schema.actor import Actor
from masis.schema.base import Record, Share
from masis.schema.case import Case
from masis.schema.review import Standing
from masis.schema.rules import ReviewTier
from masis.services.records import STATE_OF_VERDICT, CaseSummary
from masis.settings import ROLES, Settings
from masis.store import Store
from masis.store.audits.inbox import Acknowledgement, Form, ReceivedRequest

log = logging.getLogger(__name__)

ACTOR = Actor(name="ingestion")
"""The actor that audits the cases from programs."""

READ_AT_ONCE = 50
"""The number of requests that are read at a time; no page waits for them."""

ERRORS_NAMED = 100


class Rule(Record):
    """A rule for which cases enter the queue: those that meet all its conditions.

    ``field`` is the path of a value in the case (``metadata.language``). ``is_one_of`` lists the
    values that count; if it's empty, any true value counts. ``share`` samples cases by their id, so
    that an id is always in the sample or never.
    """

    flagged: bool = False
    field: str = ""
    is_one_of: tuple[JsonValue, ...] = ()
    share: Share = 1.0

    def is_met(self, case: Case) -> bool:
        """Return whether a case meets the rule."""
        values = case.to_json_dict()
        if self.flagged and _value_at_path(values, "metadata.flagged") is not True:
            return False
        if self.field:
            value = _value_at_path(values, self.field)
            if (value not in self.is_one_of) if self.is_one_of else not value:
                return False
        return is_in_sample(case.id, self.share)


class ProgramSource(Record):
    """A program that may send cases, with its limits and the rules for queuing its cases.

    A case is queued if it meets one of the rules, or if there are none. ``profile`` names the
    program's format, one of `masis import`; empty means the workbench's own format.
    """

    name: str = Field(min_length=1, max_length=100)
    token_sha256: str = Field(pattern="^[0-9a-f]{64}$")
    requests_per_minute: float = Field(default=limits.REQUESTS_A_MINUTE, gt=0, le=1_000_000)
    burst: int = Field(default=limits.BURST, ge=1, le=100_000)
    max_body_bytes: int = Field(default=limits.BODY, ge=1_000, le=64_000_000)
    max_cases: int = Field(default=limits.CASES, ge=1, le=100_000)
    profile: str = ""
    rules: tuple[Rule, ...] = ()

    @field_validator("profile")
    @classmethod
    def _check_profile(cls, profile: str) -> str:
        if profile and profile not in import_profiles():
            raise ValueError(f"there is no such profile. Use one of {', '.join(import_profiles())}")
        return profile

    def is_for_queue(self, case: Case) -> bool:
        """Return whether a case enters the queue."""
        return not self.rules or any(rule.is_met(case) for rule in self.rules)


class CaseStatus(Record):
    """The status of a case for the program that sent it.

    ``standing`` is the queue's standing (docs/glossary.md), ``headline`` the worst issue of the
    answer. While several people decide a case, it reveals none of their decisions: until the case
    is settled, its standing is the audit's.
    """

    id: str
    standing: Standing
    headline: str | None
    audited: bool
    needs_review: bool
    decided: bool
    verdict: str | None

    @classmethod
    def of(cls, case: CaseSummary) -> CaseStatus:
        """Return the status of a case without anything that depends on the viewer."""
        standing = case.standing
        if case.state == "needs_adjudication":
            failed = "error" in case.reasons and case.tier != "must_look"
            audited = "failed" if failed else _STANDING_OF_TIER[case.tier]
            standing = "not_audited" if case.run_id is None else audited
            standing = "no_answer" if "no_answer" in case.flags else standing
        return cls(
            id=case.id,
            standing=standing,
            headline=case.headline,
            audited=case.run_id is not None,
            needs_review=case.state == "escalated"
            or (case.run_id is not None and case.state in ("needs_review", "needs_adjudication")),
            decided=case.standing == "decided",
            verdict=next(
                (verdict for verdict, state in STATE_OF_VERDICT.items() if state == case.state),
                None,
            ),
        )


_STANDING_OF_TIER: dict[ReviewTier | None, Standing] = {
    "must_look": "wrong",
    "not_certified": "not_confirmed",
    None: "nothing_found",
}


def is_in_sample(case_id: str, share: float) -> bool:
    """Return whether a case is in a sample of this share, by its id alone."""
    number = int.from_bytes(hashlib.sha256(f"ingest\n{case_id}".encode()).digest()[:8])
    return number < share * 2**64


def audit_settings(settings: Settings) -> Settings | None:
    """Return the settings for audits of cases from programs, or None if they aren't audited.

    Raises:
        SettingsError: A model can't be called.
        MissingExtra: A library is not installed.

    """
    if settings.ingest_model == "off":
        return None
    models = () if settings.ingest_model == "settings" else ROLES
    values: dict[str, str] = dict.fromkeys(models, settings.ingest_model)
    chosen = settings.with_values(values | {"depth": settings.ingest_depth})
    check_models(chosen)
    return chosen


def new_token() -> tuple[str, str]:
    """Return a new token and its digest for the file of sources."""
    token = secrets.token_urlsafe(32)
    return token, token_digest(token)


def token_digest(token: str) -> str:
    """Return the SHA-256 of a token, in hexadecimal digits."""
    return hashlib.sha256(token.encode()).hexdigest()


def read_sources(written: dict[str, Any]) -> dict[str, ProgramSource]:
    """Return the sources of a file by name.

    Raises:
        SettingsError: A source isn't valid; the message names it.

    """
    tables = written.get("sources")
    if not isinstance(tables, dict) or not tables:
        raise SettingsError(
            "The file of sources has no sources. `masis ingest --new-token NAME` prints an entry."
        )
    sources: dict[str, ProgramSource] = {}
    for name, values in tables.items():
        try:
            sources[name] = ProgramSource.model_validate({"name": name, **values})
        except (ValidationError, TypeError) as error:
            first = (
                error.errors()[0]
                if isinstance(error, ValidationError)
                else {"loc": (), "msg": "isn't a table"}
            )
            place = ".".join(map(str, ("sources", name, *first["loc"])))
            raise SettingsError(f"The file of sources, {place}: {first['msg']}.") from error
    if len({source.token_sha256 for source in sources.values()}) < len(sources):
        raise SettingsError(
            "The file of sources: two sources have the same token. Give each one its own."
        )
    return sources


class BodyLook(NamedTuple):
    """A request body before it is accepted: its number of cases, and the limit that one exceeds."""

    cases: int
    limit_passed: InputError | None


class IngestionService:
    """The use cases of the inbox of one database."""

    def __init__(self, store: Store) -> None:
        self._store, self.batch = store, store.inbox.batch

    def receive(self, requests: Sequence[ReceivedRequest]) -> list[Acknowledgement]:
        """Store requests durably, so that they survive a power cut and may be acknowledged."""
        return self._store.inbox.store(requests)

    def inspect_body(self, form: Form, body: bytes, source: ProgramSource) -> BodyLook:
        """Return how many cases a body holds, and why a single case is too large to accept.

        The cases are counted again when they are read, because a profile knows better what a case
        is.
        """
        if form == "ndjson":
            # Without blanks, each line is one word, so that split counts the lines up to the limit.
            lines = body.translate(None, b" \t\r\x0b\x0c").split(None, source.max_cases + 1)
            return BodyLook(len(lines), None)
        if not body.strip() or source.profile:
            return BodyLook(int(bool(body.strip())), None)
        try:
            rows = _cases_of_body(body)
        except InputError as error:  # Invalid JSON is reported when the body is read.
            return BodyLook(1, error if error.limit else None)
        if len(rows) != 1:
            return BodyLook(len(rows), None)
        problems = (
            problem
            for row in read_any(rows, OWN_FORMAT, name="body.json")
            for problem in row.problems
        )
        return BodyLook(1, next((problem for problem in problems if problem.limit), None))

    def status(self, case_id: str, source: str) -> CaseStatus | None:
        """Return the status of a source's case, or None.

        It is None if the source hasn't sent the case, or if the case hasn't been read yet.
        """
        if not self._store.inbox.sent_by(case_id, source):
            return None
        return CaseStatus.of(self._store.cases.summary(case_id))

    def read_waiting(self, sources: Mapping[str, ProgramSource]) -> int:
        """Read the oldest requests, store the cases to queue, and return how many were read.

        If the source of a request was removed from the file, all its cases are queued.
        """
        waiting = self._store.inbox.waiting(READ_AT_ONCE)
        results = []
        for seq, request in waiting:
            try:
                result = self._read_request(request, sources.get(request.source))
            except (MasisError, OSError):  # of the database, so that a later attempt may succeed
                raise
            # Otherwise one request would be tried again forever, and none after it read.
            except Exception as error:
                log.exception("A request of %s couldn't be read", request.source)
                result = _unread_request(error)
            results.append((seq, result))
        self._store.inbox.finish(results)
        return len(results)

    def _read_request(
        self, request: ReceivedRequest, source: ProgramSource | None
    ) -> dict[str, Any]:
        errors: list[str] = []
        cases: list[Case] = []
        sent = source.profile if source is not None and request.form != "cases" else ""
        profile = sent or OWN_FORMAT
        for case in read_cases(request.form, request.body, profile):
            if source is not None and len(cases) + len(errors) == source.max_cases:
                # The server only estimates the number of cases when it accepts a body.
                errors.append(
                    f"body: holds more than {source.max_cases:,} cases (max_cases). The rest wasn't"
                    " read."
                )
                break
            if isinstance(case, InputError):
                errors.append(str(case))
            else:
                cases.append(case)
        taken = [case for case in cases if source is None or source.is_for_queue(case)]
        received, stored, unchanged, passed_over = len(cases) + len(errors), 0, 0, 0
        try:
            # In one transaction, because a case that is audited before its arrival is recorded
            # wouldn't be reported. It needn't be durable, because the request is already on disk.
            with self._store.database.transaction(durable=False):
                added = self._store.cases.add_many(taken)
                self._store.inbox.record_arrivals(taken, request.source)
        # Without this, a request that can't be stored would be tried again forever.
        except (InputError, ValueError) as error:
            errors.append(str(error))
        else:
            stored, unchanged, passed_over = added.added, added.unchanged, len(cases) - len(taken)
            errors += [str(conflict) for conflict in added.conflicts]
            if errors and request.form == "cases":  # Their sender doesn't poll a batch.
                log.warning(
                    "%d of the traces of %s are not stored: another case has the id.",
                    len(errors),
                    request.source,
                )
        return {
            "received": received,
            "stored": stored,
            "unchanged": unchanged,
            "passed_over": passed_over,
            "errors": len(errors),
            "first_errors": errors[:ERRORS_NAMED],
        }


def _unread_request(error: Exception) -> dict[str, Any]:
    """Return the result of a request that failed in an unforeseen way."""
    problem = f"body: couldn't be read ({type(error).__name__}). The server's log has the details."
    counts = dict.fromkeys(("received", "stored", "unchanged", "passed_over"), 0)
    return {**counts, "errors": 1, "first_errors": [problem]}


def read_cases(form: Form, body: bytes, profile: str = OWN_FORMAT) -> Iterator[Case | InputError]:
    """Yield the cases of a body, and an error for each part that isn't a case.

    It's read as `masis import` reads a file, with two exceptions: nothing is decompressed, because
    the limit applies to the bytes that were sent, and formats of two files are rejected. JSON may
    be one case, or ``{"cases": [...]}``.
    """
    name = "body.json" if form == "json" else "body"
    if (
        body.strip()
        and body.lstrip()[:1] not in (b"{", b"[")
        and (form == "json" or profile != OWN_FORMAT)
    ):
        yield InputError("isn't JSON", hint="Send a JSON document, or JSON Lines.", file=name)
        return
    try:
        rows: Any = (
            _cases_of_body(body) if form == "json" and profile == OWN_FORMAT else io.BytesIO(body)
        )
        for row in read_any(rows, profile, name=name):
            yield from row.problems
            if row.case is not None:
                yield row.case
    except InputError as error:
        yield error


def _cases_of_body(body: bytes) -> list[Any]:
    value = parse_object(body)
    cases = value["cases"] if set(value) == {"cases"} else None
    return cases if isinstance(cases, list) else [value]


def _value_at_path(value: Any, path: str) -> Any:
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value
