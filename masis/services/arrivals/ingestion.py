"""Ingestion: cases that programs send in, which of them enter the queue, and what became of each
request.
"""

from __future__ import annotations

import hashlib
import io
import logging
import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import Field, JsonValue, ValidationError, field_validator

from masis.api.roles import check_models
from masis.datasets.mapping.profile import OWN_FORMAT, builtin_profiles
from masis.datasets.mapping.reader import read_any
from masis.datasets.readers.strict_json import parse_object
from masis.errors import InputError, SettingsError
from masis.schema import limits
from masis.schema.actor import Actor
from masis.schema.base import Record, Share
from masis.schema.case import Case
from masis.schema.review import Standing
from masis.schema.run import ReviewTier
from masis.services.records import STATE_OF_VERDICT, CaseSummary
from masis.settings import ROLES, Settings
from masis.store import Store
from masis.store.audits.inbox import Acknowledgement, Form, ReceivedRequest

log = logging.getLogger(__name__)

ACTOR = Actor(name="ingestion")
"""Who asks for the audits of what programs send in."""

READ_AT_ONCE = 50
"""Requests that are read in one go; a page waits for none of them."""

ERRORS_NAMED = 100


class Rule(Record):
    """Which cases enter the queue: those that meet every condition given.

    ``field`` names a value by its path in the case (``metadata.language``); ``is_one_of`` says
    which values count, any that is there and not false where it is empty. ``share`` draws cases by
    their id: an id is always drawn or never.
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
            found = _value_at_path(values, self.field)
            if (found not in self.is_one_of) if self.is_one_of else not found:
                return False
        return is_in_sample(case.id, self.share)


class ProgramSource(Record):
    """A program that may send cases: how often, how much, and which of its cases enter the queue.

    Without rules every case does; with some, those that one of them takes. ``profile`` names the
    form that it sends, one of `masis import`; the workbench's own where it is empty.
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
        if profile and profile not in builtin_profiles():
            raise ValueError(
                f"there is no such profile. There are: {', '.join(builtin_profiles())}"
            )
        return profile

    def is_for_queue(self, case: Case) -> bool:
        """Return whether a case enters the queue."""
        return not self.rules or any(rule.is_met(case) for rule in self.rules)


class CaseStatus(Record):
    """Where a case stands, for the program that sent it.

    ``standing`` is that of the queue (docs/glossary.md), ``headline`` what is worst about the
    answer. Of a case that several people decide nothing is said of their decisions until it is
    settled: while they differ it stands where its audit left it.
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
        """Return the status of a case as lists show it to nobody in particular."""
        standing = case.standing
        if case.state == "needs_adjudication":
            failed = "error" in case.reasons and case.tier != "must_look"
            standing = (
                "not_audited"
                if case.run_id is None
                else "failed"
                if failed
                else _STANDING_OF_TIER[case.tier]
            )
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
                (each for each, state in STATE_OF_VERDICT.items() if state == case.state), None
            ),
        )


_STANDING_OF_TIER: dict[ReviewTier | None, Standing] = {
    "must_look": "wrong",
    "not_certified": "not_confirmed",
    None: "nothing_found",
}


def is_in_sample(case_id: str, share: float) -> bool:
    """Return whether a case is drawn into a sample of this share, by its id alone."""
    number = int.from_bytes(hashlib.sha256(f"ingest\n{case_id}".encode()).digest()[:8])
    return number < share * 2**64


def audit_settings(settings: Settings) -> Settings | None:
    """Return the settings by which cases are audited that programs send in; None where they are
    not.

    Raises SettingsError and MissingExtra where a model can't be asked.
    """
    if settings.ingest_model == "off":
        return None
    models = () if settings.ingest_model == "settings" else ROLES
    values: dict[str, str] = dict.fromkeys(models, settings.ingest_model)
    chosen = settings.with_values(values | {"depth": settings.ingest_depth})
    check_models(chosen)
    return chosen


def new_token() -> tuple[str, str]:
    """Return a new token and the digest of it that the file of sources holds."""
    token = secrets.token_urlsafe(32)
    return token, token_digest(token)


def token_digest(token: str) -> str:
    """Return the SHA-256 of a token, in hexadecimal digits."""
    return hashlib.sha256(token.encode()).hexdigest()


def read_sources(written: dict[str, Any]) -> dict[str, ProgramSource]:
    """Return the sources of a file by name. Raises SettingsError naming what is wrong with which
    source.
    """
    tables = written.get("sources")
    if not isinstance(tables, dict) or not tables:
        raise SettingsError(
            "The file of sources names none. `masis ingest --new-token NAME` prints an entry."
        )
    found: dict[str, ProgramSource] = {}
    for name, values in tables.items():
        try:
            found[name] = ProgramSource.model_validate({"name": name, **values})
        except (ValidationError, TypeError) as error:
            first = (
                error.errors()[0]
                if isinstance(error, ValidationError)
                else {"loc": (), "msg": "is no table"}
            )
            place = ".".join(map(str, ("sources", name, *first["loc"])))
            raise SettingsError(f"The file of sources, {place}: {first['msg']}.") from error
    if len({source.token_sha256 for source in found.values()}) < len(found):
        raise SettingsError("The file of sources: two sources have one token. Give each its own.")
    return found


class BodyLook(NamedTuple):
    """A body before it is taken: how many cases it holds, and which limit its only case passes."""

    cases: int
    limit_passed: InputError | None


class IngestionService:
    """The use cases of the inbox of one database."""

    def __init__(self, store: Store) -> None:
        self._store, self.batch = store, store.inbox.batch

    def receive(self, requests: Sequence[ReceivedRequest]) -> list[Acknowledgement]:
        """Store requests so that they survive a power cut; only then may they be acknowledged."""
        return self._store.inbox.store(requests)

    def inspect_body(self, form: Form, body: bytes, source: ProgramSource) -> BodyLook:
        """Return how many cases a body holds, and why one that is a single case is too large to
        take.

        They are counted again when they are read: a profile knows better what is a case.
        """
        if form == "ndjson":  # blanks go first, so that what is left on a line is one word
            lines = body.translate(None, b" \t\r\x0b\x0c").split(None, source.max_cases + 1)
            return BodyLook(len(lines), None)
        if not body.strip() or source.profile:
            return BodyLook(int(bool(body.strip())), None)
        try:
            rows = _cases_of_body(body)
        except InputError as error:  # named in the batch where it is no JSON
            return BodyLook(1, error if error.limit else None)
        if len(rows) != 1:
            return BodyLook(len(rows), None)
        problems = (
            problem
            for row in read_any(rows, OWN_FORMAT, name="body.json")
            for problem in row.problems
        )
        return BodyLook(1, next((each for each in problems if each.limit), None))

    def status(self, case_id: str, source: str) -> CaseStatus | None:
        """Return where a case of a source stands; None where it has sent none of that id, or none
        was read yet.
        """
        if not self._store.inbox.sent_by(case_id, source):
            return None
        return CaseStatus.of(self._store.cases.summary(case_id))

    def read_waiting(self, sources: Mapping[str, ProgramSource]) -> int:
        """Read the oldest requests and store the cases that enter the queue; returns how many were
        read.

        A request of a source that is gone is read by the rules of none: every case enters the
        queue.
        """
        waiting = self._store.inbox.waiting(READ_AT_ONCE)
        results = [
            (seq, self._read_request(request, sources.get(request.source)))
            for seq, request in waiting
        ]
        self._store.inbox.finish(results)
        return len(results)

    def _read_request(
        self, request: ReceivedRequest, source: ProgramSource | None
    ) -> dict[str, Any]:
        errors: list[str] = []
        found: list[Case] = []
        sent = source.profile if source is not None and request.form != "cases" else ""
        profile = sent or OWN_FORMAT
        for each in read_cases(request.form, request.body, profile):
            if source is not None and len(found) + len(errors) == source.max_cases:
                # The door counts what a body seems to hold; only who has read it knows.
                errors.append(
                    f"body: holds more than {source.max_cases:,} cases (max_cases): the rest was"
                    " not read."
                )
                break
            if isinstance(each, InputError):
                errors.append(str(each))
            else:
                found.append(each)
        taken = [case for case in found if source is None or source.is_for_queue(case)]
        received, stored, unchanged, passed_over = len(found) + len(errors), 0, 0, 0
        try:
            # Both or neither: what is audited before it is noted would not be reported. The request
            # is on the disk.
            with self._store.database.transaction(durable=False):
                added = self._store.cases.add_many(taken)
                self._store.inbox.record_arrivals(taken, request.source)
        # else what can't be stored would be tried again for ever
        except (InputError, ValueError) as error:
            errors.append(str(error))
        else:
            stored, unchanged, passed_over = added.added, added.unchanged, len(found) - len(taken)
            errors += [str(conflict) for conflict in added.conflicts]
            if errors and request.form == "cases":  # whose sender polls no batch
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


def read_cases(form: Form, body: bytes, profile: str = OWN_FORMAT) -> Iterator[Case | InputError]:
    """Yield the cases of a body, and an error for each part that holds none.

    It is read as `masis import` reads a file, but that nothing is unpacked (the limit is on what
    was sent) and that a form of two files is refused. JSON may be one case, or ``{"cases":
    [...]}``.
    """
    name = "body.json" if form == "json" else "body"
    if (
        body.strip()
        and body.lstrip()[:1] not in (b"{", b"[")
        and (form == "json" or profile != OWN_FORMAT)
    ):
        yield InputError("holds no JSON", hint="Send a JSON document, or JSON Lines.", file=name)
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
