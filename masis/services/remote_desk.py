"""A reviewer's desk on a team's server, over the JSON API (``masis.Desk("https://host")``).

The server applies rights, rules and results. An error of the server is raised here as the
same error that a desk on a file raises.
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import time
import uuid
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

import httpx2
from pydantic import TypeAdapter, ValidationError
from tqdm import tqdm

from masis import errors, version
from masis.api.batch import read_all
from masis.errors import (
    InputError,
    MasisError,
    NotAllowed,
    ResultsHidden,
    ServerUnreachable,
    SettingsError,
)
from masis.schema.batches import Batch
from masis.schema.case import Case, Severity
from masis.schema.minimal_evidence import MinimalEvidence
from masis.schema.reading import FieldMap
from masis.schema.review import LogEntry, Verdict
from masis.schema.run import Run
from masis.schema.wording import count_noun
from masis.services import api_records as records
from masis.services.batch_actions import BatchRequest
from masis.services.batches import BatchPreview, Progress
from masis.services.cases import CaseView
from masis.services.desk import (
    SHOWN,
    DecisionRowResult,
    Desk,
    as_names,
    batch_request,
    check_verdict,
    encoding_of,
    export_path,
    naming_limit,
    queue_filter,
    sentence_label,
)
from masis.services.labels import LabelRecord, as_labels
from masis.services.queues import QueueFigures, QueuePreview
from masis.services.records import VIEWER_FIELDS, CasePage, CaseSummary, ReviewQueue
from masis.settings import Settings, secret
from masis.settings.hosts import is_loopback

TOKEN = "MASIS_TOKEN"  # noqa: S105 (the name of the variable)

TIMEOUT_S = 60.0
TRIES = 4
"""How often a request is sent if the server can't be reached or is overloaded."""

FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 30.0
POLL_EVERY_S = 0.5
BATCH_BYTES = 4_000_000
"""About how many bytes of cases one request adds. The server accepts 16 MB."""
_EFFECT_UNKNOWN = "It isn't known whether the request had an effect. Check before you try again."

A = TypeVar("A")


class RemoteDesk(Desk):
    """A desk on a server, with the methods of ``masis.Desk``.

    Args:
        url: The address of the workbench, such as ``https://audits.example.org``.
        reviewer: The name to decide under on a server without sign-in. A token names its owner.
        token: A personal token; by default the value of ``MASIS_TOKEN``.
        insecure: Whether http may be used to reach another machine. Everyone on the way can then
            read the token and all texts.
        settings: Not allowed: the server's settings apply.
        client: The HTTP client, for tests.

    Raises:
        SettingsError: The address is http on another machine, or it isn't an address.

    """

    def __init__(
        self,
        url: str,
        *,
        reviewer: str | None = None,
        settings: Settings | None = None,
        token: str | None = None,
        insecure: bool = False,
        client: httpx2.Client | None = None,
    ) -> None:
        if settings is not None:
            raise SettingsError("settings: the server's own settings apply. Leave them out.")
        self.url = _checked_address(url, insecure)
        known = _checked_token(token) or _token_from_environment()
        if known is not None and reviewer:
            raise SettingsError("reviewer: a token acts for its owner. Leave the name out.")
        headers = {"user-agent": f"masis/{version.APP}"}
        if known is not None:
            headers["authorization"] = f"Bearer {known}"
        if reviewer:
            # A header holds ASCII only, and a name may have other letters.
            headers["x-masis-reviewer"] = quote(reviewer)
        # A redirect could lead the token to another host, so none is followed.
        self._client = client or httpx2.Client(follow_redirects=False, timeout=TIMEOUT_S)
        self._headers = headers
        self._seen: dict[str, int] = {}
        self._shown: dict[str, tuple[str, ...]] = {}

    def close(self) -> None:
        """Close the connections to the server."""
        self._client.close()

    def me(self) -> records.Me:
        """Return who this desk acts for, and what they may do."""
        return self._ask(records.Me, "GET", "/me")

    # Cases and audits

    def audit(
        self,
        cases: Any,
        *,
        map: FieldMap | None = None,  # noqa: A002 (the name that Desk.audit has)
        again: bool = False,
        concurrency: int | None = None,
        progress: bool = True,
        max_cost: float | None = None,
    ) -> list[Run]:
        """Add cases to the server, have it audit them, and return the runs in the order of the
        cases.

        The arguments are those of ``Desk.audit``, except that the server decides how many audits
        run at once, and limits their cost. After Ctrl-C the audits that wait are stopped, and the
        finished runs are returned.

        Raises:
            InputError: As for ``Desk.audit``, and if ``concurrency`` or ``max_cost`` is given.
            CaseConflict: A case is already stored with other content. Nothing was audited.
            ResultsHidden: All cases are audited, but the policy hides results from this person.

        """
        for name, value in (("concurrency", concurrency), ("max_cost", max_cost)):
            if value is not None:
                raise InputError(
                    "isn't possible on a server",
                    hint="Leave it out; the server's settings apply.",
                    field=name,
                )
        read = [job.case for job in read_all(cases, map)]
        for conflict in self.add(read):
            raise errors.CaseConflict(conflict.message, case=conflict.case)
        runs: list[Run] = []
        hidden = 0
        bar = tqdm(total=len(read), disable=not progress, desc="Auditing", unit="case")
        with bar:
            for _, result in self.audit_stored(read, again=again):
                bar.update()
                if isinstance(result, Run):
                    runs.append(result)
                elif isinstance(result, ResultsHidden):
                    hidden += 1
                else:
                    raise result
        if hidden:
            raise ResultsHidden(
                f"{count_noun(len(read), 'case')} audited. The team's policy hides the results of"
                f" {hidden:,} of them until you decide those cases."
            )
        return runs

    def add(self, cases: Iterable[Case]) -> list[records.CaseProblem]:
        """Add cases, and return those that are stored with other content."""
        conflicts: list[records.CaseProblem] = []
        for batch in _batches(cases):
            added = self._ask(records.AddedCases, "POST", "/cases", {"cases": batch})
            conflicts += added.conflicts
        return conflicts

    def audit_stored(
        self, cases: Sequence[Case], *, again: bool = False
    ) -> Iterator[tuple[Case, Run | MasisError]]:
        """Have stored cases audited, and yield each with its run, or with the error why there is
        none.

        All audits are started first, so that the server can run several at once. If the caller
        stops, those that aren't finished are stopped.
        """
        jobs: list[records.AuditJob] = []
        for first in range(0, len(cases), records.MOST_CASES):
            ids = [case.id for case in cases[first : first + records.MOST_CASES]]
            body = {"cases": ids, "again": again}
            jobs += self._ask(tuple[records.AuditJob, ...], "POST", "/audits", body)
        unfinished = {job.run for job in jobs}
        try:
            for case, job in zip(cases, jobs, strict=True):
                result = self._wait_for(job)
                unfinished.discard(job.run)
                yield case, result
        except KeyboardInterrupt:
            pass
        finally:
            # Stopping is a courtesy: a server that can't be reached is reported by its other calls.
            with contextlib.suppress(MasisError):
                for run_id in unfinished:
                    self._ask(records.AuditJob, "DELETE", f"/audits/{run_id}")

    def _wait_for(self, job: records.AuditJob) -> Run | MasisError:
        """Return the run of a job once it has ended, or the error why there is none."""
        try:
            while job.state in ("waiting", "running"):
                # Most jobs have ended while the ones before them were waited for.
                job = self._ask(records.AuditJob, "GET", f"/audits/{job.run}")
                if job.state in ("waiting", "running"):
                    time.sleep(POLL_EVERY_S)
            if job.state == "interrupted":
                return MasisError(f"The audit of case {job.case!r} was interrupted: {job.why}")
            return self._ask(Run, "GET", f"/runs/{job.run}")
        except MasisError as error:
            return error

    def queue(self, *, limit: int = 50, **filters: Any) -> tuple[CaseSummary, ...]:
        """Return the cases that wait for this reviewer, most urgent first."""
        query = {**filters, "size": limit, "waiting": True}
        try:
            return self._ask(CasePage, "GET", "/cases", query=query).rows
        except InputError as error:
            raise naming_limit(error) from error

    def queues(self, *, archived: bool = False) -> tuple[QueueFigures, ...]:
        """Return the named queues with their figures."""
        query = {"archived": archived}
        return self._ask(tuple[QueueFigures, ...], "GET", "/queues", query=query)

    def preview_queue(self, **filters: Any) -> QueuePreview:
        """Return what filters would hold as a queue."""
        queue_filter(filters)  # so that an error names the filter as it does on a file
        return self._ask(QueuePreview, "POST", "/queues/preview", {"cases": filters})

    def create_queue(self, name: str, **filters: Any) -> ReviewQueue:
        """Create a queue with the cases that the filters match."""
        queue_filter(filters)
        body = {"name": name, "cases": filters}
        return self._ask(ReviewQueue, "POST", "/queues", body, repeatable=False)

    def change_queue(self, queue: str, /, **changes: Any) -> ReviewQueue:
        """Change a queue and return its new version. See ``Desk.change_queue``."""
        return self._ask(ReviewQueue, "PUT", f"/queues/{_quote_name(queue)}", changes)

    def show(self, case_id: str) -> CaseView:
        """Return a case with what this reviewer may see of its newest audit and its decisions."""
        view = self._ask(records.CaseDetail, "GET", f"/cases/{_quote_name(case_id)}").view()
        self._seen[case_id] = view.summary.version
        self._shown[case_id] = () if view.machine_hidden or view.run is None else SHOWN
        return view

    # Decisions

    def decide(self, case_id: str, verdict: Verdict, **values: Any) -> LogEntry:
        """Decide an answer of a case. The arguments and errors are those of
        ``Desk.decide``.
        """
        entry = self._decide("decisions", case_id, verdict, **values)
        self._seen.pop(case_id, None)
        self._shown.pop(case_id, None)
        return entry

    def adjudicate(self, case_id: str, verdict: Verdict, **values: Any) -> LogEntry:
        """Give the final verdict on a case that several reviewers decided."""
        return self._decide("adjudication", case_id, verdict, **values)

    def _decide(
        self,
        kind: str,
        case_id: str,
        verdict: Verdict,
        *,
        machine_shown: Sequence[str] | None = None,
        version: int | None = None,
        token: str | None = None,
        labels: Iterable[LabelRecord] = (),
        **values: Any,
    ) -> LogEntry:
        check_verdict(verdict)
        if machine_shown is None:
            machine_shown = self._shown.get(case_id)
        body = {
            **values,
            "verdict": verdict,
            "labels": list(as_labels(labels)),
            "machine_shown": None if machine_shown is None else list(machine_shown),
            "version": self._seen.get(case_id) if version is None else version,
            # A token makes it safe to send the request again if no response arrived.
            "token": token or uuid.uuid4().hex,
        }
        return self._ask(LogEntry, "POST", f"/cases/{_quote_name(case_id)}/{kind}", body)

    def label(
        self,
        case_id: str,
        labels: Iterable[LabelRecord],
        *,
        acknowledge: bool = False,
        acknowledge_citations: bool = False,
    ) -> LogEntry:
        """Add labels to this reviewer's decision on a case."""
        body = {
            "labels": list(as_labels(labels)),
            "acknowledge": acknowledge,
            "acknowledge_citations": acknowledge_citations,
        }
        path = f"/cases/{_quote_name(case_id)}/labels"
        return self._ask(LogEntry, "POST", path, body, repeatable=False)

    def log(
        self, case_id: str | None = None, *, limit: int = 50, text: str = ""
    ) -> tuple[LogEntry, ...]:
        """Return the newest entries of the decision log that this reviewer may see."""
        query = {"case": case_id, "limit": limit, "text": text or None}
        return self._ask(tuple[LogEntry, ...], "GET", "/decisions", query=query)

    def undo(self, entry_id: str) -> LogEntry:
        """Undo one entry of the log by another one."""
        return self._ask(LogEntry, "POST", f"/decisions/{_quote_name(entry_id)}/undo")

    def decide_all(
        self, rows: Iterable[Mapping[str, Any]], *, dry_run: bool = False
    ) -> Iterator[DecisionRowResult]:
        """Make the decisions of rows one after another and yield each result. See
        ``Desk.decide_all``.
        """
        body = {"rows": list(rows), "dry_run": dry_run}
        answers = self._ask(tuple[records.RowResult, ...], "POST", "/decisions", body)
        for answer in answers:
            error = None if answer.error is None else _error_of(answer.error)
            about = (answer.line, answer.case, answer.verdict)
            yield DecisionRowResult(*about, answer.entry, error, answer.outcome, answer.case_added)

    # Team

    def comment(self, case_id: str, text: str) -> LogEntry:
        """Add a comment to a case."""
        path = f"/cases/{_quote_name(case_id)}/comments"
        return self._ask(LogEntry, "POST", path, {"text": text}, repeatable=False)

    def assign(
        self, case_ids: Sequence[str], reviewers: Sequence[str], *, remove: bool = False
    ) -> int:
        """Assign cases to reviewers, or take assignments back, and return how many cases."""
        names = list(as_names(reviewers, "reviewers"))
        body = {"cases": list(as_names(case_ids, "case_ids")), "names": names, "remove": remove}
        return self._ask(records.Changed, "POST", "/assignments", body).cases

    def tag(self, case_ids: Sequence[str], tags: Sequence[str], *, remove: bool = False) -> int:
        """Add tags to cases, or remove them, and return how many cases."""
        names = list(as_names(tags, "tags"))
        body = {"cases": list(as_names(case_ids, "case_ids")), "names": names, "remove": remove}
        return self._ask(records.Changed, "POST", "/tags", body).cases

    # Actions on many cases

    def preview_batch(self, action: str, cases: Sequence[str] = (), **values: Any) -> BatchPreview:
        """Return what an action on many cases would do. See ``Desk.preview_batch``."""
        body = _batch_body(batch_request(action, cases, **values))
        return self._ask(BatchPreview, "POST", "/batches/preview", body)

    def apply_batch(
        self,
        action: str,
        cases: Sequence[str] = (),
        *,
        token: str | None = None,
        expected: str = "",
        progress: Progress | None = None,
        cancelled: Callable[[], bool] = lambda: False,
        **values: Any,
    ) -> Batch:
        """Apply an action to many cases, and return the batch. See ``Desk.apply_batch``."""
        body = _batch_body(batch_request(action, cases, **values))
        # A token makes it safe to send the request again if no response arrived.
        body |= {"token": token or uuid.uuid4().hex, "expected": expected}
        batch = self._ask(Batch, "POST", "/batches", body)
        return self._run_batch(batch, progress, cancelled)

    def label_sentence(
        self,
        case_id: str,
        words: str,
        label: str,
        *,
        severity: Severity | None = None,
        note: str = "",
        acknowledge: bool = False,
        token: str | None = None,
        progress: Progress | None = None,
    ) -> Batch:
        """Label words in every answer with the same sentence. See ``Desk.label_sentence``."""
        body = sentence_label(words, label, severity, note).model_dump()
        body |= {"acknowledge": acknowledge, "token": token or uuid.uuid4().hex}
        path = f"/cases/{_quote_name(case_id)}/sentence-labels"
        return self._run_batch(self._ask(Batch, "POST", path, body), progress)

    def undo_batch(self, batch_id: str, progress: Progress | None = None) -> Batch:
        """Undo the entries of a batch. See ``Desk.undo_batch``."""
        path = f"/batches/{_quote_name(batch_id)}/undo"
        return self._run_batch(self._ask(Batch, "POST", path), progress)

    def _run_batch(
        self,
        batch: Batch,
        progress: Progress | None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Batch:
        """Have the server handle the rest of a batch."""
        path = f"/batches/{_quote_name(batch.id)}"
        while batch.is_running:
            if progress is not None:
                progress(batch)
            if cancelled():
                return self._ask(Batch, "DELETE", path)
            batch = self._ask(Batch, "POST", f"{path}/advance")
        return batch

    def list_batches(self, *, limit: int = 50) -> tuple[Batch, ...]:
        """Return the newest batches that this reviewer may see."""
        return self._ask(tuple[Batch, ...], "GET", "/batches", query={"limit": limit})

    # Minimal evidence

    def verify_without_passages(
        self, case_id: str, *, claim: int | None = None, iteration: int = 1
    ) -> tuple[MinimalEvidence, ...]:
        """Have claims verified without their passages. See ``Desk.verify_without_passages``."""
        path = f"/cases/{_quote_name(case_id)}/minimal-evidence"
        body = {"claim": claim, "iteration": iteration}
        # A repeated request would ask a model, and pay, twice.
        return self._ask(tuple[MinimalEvidence, ...], "POST", path, body, repeatable=False)

    def minimal_evidence(self, case_id: str) -> tuple[MinimalEvidence, ...]:
        """Return the stored results on a case that this reviewer may see."""
        path = f"/cases/{_quote_name(case_id)}/minimal-evidence"
        return self._ask(tuple[MinimalEvidence, ...], "GET", path)

    # Exports

    def export(
        self,
        form: str,
        out: str | PathLike[str],
        *,
        encoding: str | None = None,
        split: str | None = None,
        any_state: bool = False,
        **filters: Any,
    ) -> Path:
        """Write an export to a file, or for some formats a folder, with its manifest beside it."""
        path = export_path(out)
        query = {
            **filters,
            "encoding": encoding or encoding_of(path),
            "split": split,
            "any_state": any_state,
            "archive": path.name,
        }
        response = self._send("GET", f"/exports/{_quote_name(form)}", query=query)
        _extract(response.content, path)
        return path

    # The wire

    def _ask(
        self,
        answer: type[A],
        method: str,
        path: str,
        body: object = None,
        query: Mapping[str, Any] | None = None,
        *,
        repeatable: bool = True,
    ) -> A:
        """Send a request and return its answer as this type."""
        response = self._send(method, path, body, query, repeatable=repeatable)
        try:
            return TypeAdapter(answer).validate_json(response.content)
        except ValidationError as error:
            raise ServerUnreachable(
                f"{self.url}: the answer isn't one of this version ({version.APP}). Is it a MASIS"
                " workbench of the same version?"
            ) from error

    def _send(
        self,
        method: str,
        path: str,
        body: object = None,
        query: Mapping[str, Any] | None = None,
        *,
        repeatable: bool = True,
    ) -> httpx2.Response:
        """Send a request, again if the server can't be reached or is overloaded.

        A request without a response may have had its effect. It's sent again only if it is
        ``repeatable``, because it has a token or the same effect twice as once.
        """
        given = {name: value for name, value in (query or {}).items() if value is not None}
        content = None if body is None else TypeAdapter(Any).dump_json(body)
        headers = self._headers | ({"content-type": "application/json"} if body is not None else {})
        wait, problem = FIRST_WAIT_S, ""
        for attempt in range(TRIES):
            if attempt:
                # A random factor, so that clients which failed at once don't all return at once.
                time.sleep(min(wait, LONGEST_WAIT_S) * random.uniform(0.75, 1.25))
                wait *= 2
            try:
                response = self._client.request(
                    method,
                    f"{self.url}/api/v1{path}",
                    params=given,
                    content=content,
                    headers=headers,
                )
            except (httpx2.HTTPError, OSError) as error:
                problem = f"{self.url} can't be reached ({type(error).__name__})"
                # Without a connection, the server can't have received the request.
                if repeatable or isinstance(error, httpx2.ConnectError):
                    continue
                raise ServerUnreachable(f"{problem}. {_EFFECT_UNKNOWN}") from error
            if response.status_code in (429, 502, 503, 504):
                # The header can also hold a date (RFC 9110, section 10.2.3), which is ignored.
                retry_after = response.headers.get("retry-after", "")
                wait = max(wait, float(retry_after) if retry_after.isdecimal() else 0.0)
                problem = f"{self.url} is overloaded ({response.status_code})"
                # A proxy sends these two if it passed the request on but got no valid answer in
                # time (RFC 9110, sections 15.6.3 and 15.6.5).
                if response.status_code in (502, 504) and not repeatable:
                    raise ServerUnreachable(f"{problem}. {_EFFECT_UNKNOWN}")
                continue
            if response.status_code >= 300:
                raise _error_in(response, self.url)
            return response
        raise ServerUnreachable(f"{problem}. Check the address and the network, then try again.")


def _batches(cases: Iterable[Case]) -> Iterator[list[dict[str, Any]]]:
    """Yield cases as JSON data, as many at once as fit into one request."""
    batch: list[dict[str, Any]] = []
    size = 0
    for case in cases:
        content = case.to_json_dict()
        length = len(json.dumps(content, default=str))
        if batch and (size + length > BATCH_BYTES or len(batch) == records.MOST_CASES):
            yield batch
            batch, size = [], 0
        batch.append(content)
        size += length
    if batch:
        yield batch


def _batch_body(request: BatchRequest) -> dict[str, Any]:
    body = request.model_dump(mode="json", exclude={"matching"}, exclude_defaults=True)
    if request.matching is not None:
        names = set(VIEWER_FIELDS)
        body["matching"] = request.matching.model_dump(
            mode="json", exclude=names, exclude_defaults=True
        )
    return {"action": request.action, **body}


def _checked_address(url: str, insecure: bool) -> str:
    parts = urlsplit(url)
    if not parts.hostname or parts.username or parts.query or parts.fragment:
        raise SettingsError(f"{url!r} isn't an address such as https://audits.example.org.")
    if parts.scheme.lower() == "http" and not is_loopback(parts.hostname) and not insecure:
        raise SettingsError(
            f"{parts.scheme}://{parts.hostname}: over http, everyone on the way can read the token"
            " and all text. Use https, or pass insecure=True (--insecure) if the network is safe."
        )
    return url.rstrip("/")


def _checked_token(token: str | None) -> str | None:
    """Return a token without blanks around it, as files often end with a line break."""
    if token is None:
        return None
    if not token.strip().isascii() or not token.strip().isprintable():
        raise SettingsError("token: it isn't one. Tokens start with masis_ and have no blanks.")
    return token.strip()


def _token_from_environment() -> str | None:
    found = secret(TOKEN)
    return found.get_secret_value() if found is not None else None


def _quote_name(name: str) -> str:
    # A client resolves "." and ".." in a path, and so would drop an id that begins with them.
    return quote(name, safe="").replace(".", "%2E")


def _error_in(response: httpx2.Response, url: str) -> MasisError:
    """Return the error of a response as the error that a desk on a file raises."""
    try:
        about = response.json()["error"]
    except (ValueError, KeyError, TypeError):
        about = None
    if not isinstance(about, dict):
        return ServerUnreachable(
            f"{url} answered with status {response.status_code}, but not as a MASIS workbench."
            " Check the address."
        )
    if about.get("kind") == "RequestRefused" and about.get("status") in (401, 403):
        if about["status"] == 401:
            hint = f"Set {TOKEN}, or pass token=...; the Team page creates tokens."
        else:
            hint = str(about.get("hint", ""))
        return NotAllowed(f"{_as_sentence(about.get('problem'))} {hint}".strip())
    return _error_of(about)


def _error_of(about: Mapping[str, Any]) -> MasisError:
    """Return the error that an error object describes."""
    problem, hint = str(about.get("problem", "")), str(about.get("hint", ""))
    kind = getattr(errors, str(about.get("kind", "")), None)
    if kind is errors.CaseHeld:
        return errors.CaseHeld(
            str(about.get("message", "")),
            by=str(about.get("by", "")),
            until=str(about.get("until", "")),
        )
    # The name comes from a server, so it is used only if it names one of our errors.
    known = kind if isinstance(kind, type) and issubclass(kind, MasisError) else None
    if problem and (known is None or issubclass(known, InputError)):
        fields = {name: about.get(name) for name in ("field", "line", "limit")}
        return InputError(problem, hint=hint, **fields)
    message = str(about.get("message") or problem or "The server reported an error.")
    # These two need more than a message
    if known is None or issubclass(known, InputError | errors.BadReply):
        return MasisError(message)
    return known(message)


def _as_sentence(problem: object) -> str:
    text = str(problem or "the server refused the request")
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def _extract(content: bytes, out: Path) -> None:
    """Write the files of an archive to ``out`` and beside it.

    A server isn't trusted: a member may only be ``out`` itself, its manifest or a file in the
    folder ``out``.
    """
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
    except zipfile.BadZipFile as error:
        raise ServerUnreachable("The server's export isn't a zip file. Try again.") from error
    with archive:
        for name in archive.namelist():
            parts = PurePosixPath(name).parts
            # All names are checked before the first file is written. A backslash separates folders
            # on Windows.
            is_own = parts in ((out.name,), (f"{out.name}.manifest.json",)) or (
                len(parts) > 1 and parts[0] == out.name
            )
            if not is_own or ".." in parts or "\\" in name:
                raise ServerUnreachable(
                    f"The server's export contains {name[:80]!r}, which it may not. Nothing was"
                    " written."
                )
        try:
            for name in archive.namelist():
                path = out.parent.joinpath(*PurePosixPath(name).parts)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(archive.read(name))
        except OSError as error:
            raise InputError(
                f"{out} can't be written ({error.strerror})",
                hint="Name another file, or for this format a folder.",
                field="out",
            ) from error


Desk.for_addresses = RemoteDesk

__all__ = ["Desk", "RemoteDesk"]
