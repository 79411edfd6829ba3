"""What the tools do, on the use cases of the services.

No SDK here and nothing async: a method runs on a thread of its own, reports how far it is, and asks whether to stop.
"""

from __future__ import annotations

import json
import re
import threading
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from masis.api import audits, draft_critique
from masis.errors import InputError, MasisError, UnknownRecord
from masis.integrations.mcp import arguments, reports
from masis.integrations.mcp.arguments import cursor, page_of
from masis.integrations.mcp.quoting import named
from masis.integrations.mcp.reports import FoundEvidence
from masis.integrations.mcp.sources import Source, address, among, gathered, near_case_ids, near_run_ids
from masis.integrations.mcp.spending import Spending
from masis.schema.audit import ClaimCheck
from masis.schema.case import Case, Evidence, case_of
from masis.schema.drafts import CritiqueResult, SourceDocument
from masis.schema.run import Event, Run
from masis.services import Actor, Workbench
from masis.services.records import CaseFilter
from masis.settings import Settings

# The chunks of a case that say most about some words, and the part of each where they stand.

MOST_CHUNKS = 5
EXCERPT = 300
_WORDS = 32
_WORD = re.compile(r"\w+")


def best_chunks(case: Case, text: str) -> list[FoundEvidence]:
    """Up to five chunks of a case with the most of the words, in the order of how many."""
    words = list(dict.fromkeys(_plain(found.group()) for found in _WORD.finditer(text)))[:_WORDS]
    plain = [(chunk, _plain(chunk.text)) for chunk in case.evidence]
    scored = [(sum(word in said for word in words), chunk) for chunk, said in plain]
    best = sorted((each for each in scored if each[0]), key=lambda each: -each[0])[:MOST_CHUNKS]
    return [
        FoundEvidence(
            source_id=address(case.id, chunk.id),
            case_id=case.id,
            evidence_id=chunk.id,
            source=chunk.source,
            excerpt=_excerpt(chunk, words),
            characters=len(chunk.text),
        )
        for _, chunk in best
    ]


def _excerpt(chunk: Evidence, words: list[str]) -> str:
    """The stretch around the first of the words."""
    plain = _plain(chunk.text)
    if len(plain) != len(chunk.text):  # positions differ where a character has no plain form of one character
        return chunk.text[:EXCERPT]
    first = min((at for word in words if (at := plain.find(word)) >= 0), default=0)
    start = max(0, first - EXCERPT // 4)
    cut = chunk.text[start : start + EXCERPT]
    return f"{'…' if start else ''}{cut}{'…' if start + EXCERPT < len(chunk.text) else ''}"


def _plain(text: str) -> str:
    """Lower case without accents, as the full text index compares words."""
    decomposed = unicodedata.normalize("NFD", text.lower())
    return "".join(char for char in decomposed if not unicodedata.combining(char))


ACTOR = Actor(name="mcp")
"""Who stores the cases and audits that a client asks for."""

MOST_REPORTED = 2_000_000
"""Characters of a run that get_run gives whole; longer ones are read as the resource."""

STEPS = 5
"""Steps of an iteration: citations, claims, critique, evaluation, revision."""
_WAIT_S = 0.2


class Stopped(Exception):
    """Whoever asked has gone or taken it back; what was finished is kept, and the same call goes on from there."""


class Progress(NamedTuple):
    """How far a call is: ``done`` of at most ``total``, where that is known, in words of ours."""

    done: float
    total: float | None
    message: str


class Watch(NamedTuple):
    """Who waits for a call: receives progress, and may have gone."""

    report: Callable[[Progress], None] = lambda progress: None
    gone: Callable[[], bool] = lambda: False

    def stop_if_gone(self) -> bool:
        """False, so that an audit goes on. Raises Stopped, which leaves the run to be taken up again."""
        if self.gone():
            raise Stopped
        return False


class ToolHandlers:
    """The tools on one workbench: one method a tool, from its arguments to its report."""

    def __init__(self, workbench: Workbench, spending: Spending | None = None) -> None:
        self.workbench, self.settings = workbench, workbench.settings
        self.spending = spending or Spending()
        self._audited: dict[str, threading.Lock] = {}

    # checking answers against evidence

    def critique_answer(self, request: arguments.CritiqueAnswer, watch: Watch) -> CritiqueResult:
        """Critique a draft against stored evidence (DRAFT-CRITIQUE-MCP). Sources keep the ids that the caller used."""
        if not request.source_ids:
            raise InputError("is empty", cure="Name the evidence to hold the draft against.", field="sourceIds")
        self.spending.check()
        sources = gathered(self.workbench, request.source_ids)
        options = {
            name: value
            for name, value in (("auto_revise", request.auto_revise), ("strictness", request.strictness))
            if value is not None
        }
        found = draft_critique.critique_draft(
            request.query, request.draft, map(_document, sources), options, self.settings, cancelled=watch.gone
        )
        return _with_given_ids(found, {source.chunk.id: source.source_id or "" for source in sources})

    def audit_citations(self, request: arguments.AuditCitations, watch: Watch) -> reports.CitationReport:
        """Return which markers of an answer point at evidence, and which sentences carry none."""
        sources = gathered(self.workbench, request.source_ids, request.evidence)
        found = audits.audit_citations(request.answer, [source.chunk for source in sources], self.settings)
        return reports.CitationReport(audit=found, sources=reports.used(sources))

    def verify_claims(self, request: arguments.VerifyClaims, watch: Watch) -> reports.ClaimsReport:
        """Return one check for each claim, in their order."""
        sources = gathered(self.workbench, request.source_ids, request.evidence)
        self.spending.check()
        chunks = [source.chunk for source in sources]
        checks: list[ClaimCheck] = audits.verify_claims(
            request.claims, chunks, self.settings, cancelled=watch.stop_if_gone
        )
        return reports.ClaimsReport(checks=tuple(checks), sources=reports.used(sources))

    # audits

    def run_audit(self, request: arguments.RunAudit, watch: Watch) -> reports.RunReport:
        """Audit a case and store the run; one that was cut short is resumed, a finished one is returned."""
        case = self._case_to_audit(request)
        with self._one_at_a_time(case, watch):
            found = None if request.again else self.workbench.audits.finished(case, self.settings)
            if found and not found.incomplete and found.termination_reason != "cancelled":
                return reports.of_run(found, reused=True)
            self.spending.check()
            reporter = _ProgressReporter(self.settings, case, watch)
            run = self.workbench.audits.audit(
                ACTOR,
                case,
                settings=self.settings,
                on_event=reporter.event,
                cancelled=lambda: watch.stop_if_gone() or self.spending.reached,
            )
        return reports.of_run(run, reused=False)

    def _case_to_audit(self, request: arguments.RunAudit) -> Case:
        if request.case_id is not None:
            return self._case(request.case_id, "caseId")
        assert request.case is not None
        content: dict[str, Any] = {
            name: getattr(request.case, name) for name in request.case.model_fields_set if name != "id"
        }
        case = case_of({**content, **({} if request.case.id is None else {"id": request.case.id})})
        if request.case.id is None:
            case = case.model_copy(update={"id": f"mcp-{case.digest()[:16]}"})
        self.workbench.cases.add_one(ACTOR, case)
        return case

    @contextmanager
    def _one_at_a_time(self, case: Case, watch: Watch) -> Iterator[None]:
        """One audit of a case at a time: whoever asks for the same meanwhile waits, and gets the same run."""
        lock = self._audited.setdefault(case.id, threading.Lock())
        while not lock.acquire(timeout=_WAIT_S):
            watch.stop_if_gone()
        try:
            yield
        finally:
            lock.release()

    # reading

    def get_run(self, request: arguments.GetRun, watch: Watch) -> reports.RunReport:
        """Return a run, finished or not."""
        whole = request.detail == "whole"
        found = self.run(request.run_id)
        report = (
            reports.of_run(found, whole=whole) if isinstance(found, Run) else reports.of_progress(found, whole=whole)
        )
        if whole and len(json.dumps(report.run, ensure_ascii=False)) > MOST_REPORTED:
            raise InputError(
                f"is whole for this run more than {MOST_REPORTED:,} characters",
                cure=f"Ask for issues, or read the resource {report.uri}.",
                field="detail",
            )
        return report

    def run(self, run_id: str) -> Any:
        """Return a finished run, or the progress of another one. Raises InputError naming near ids."""
        try:
            progress = self.workbench.runs.progress(run_id)
        except UnknownRecord as error:
            raise self._no_such_run(run_id) from error
        return self.workbench.runs.get(run_id) if progress.state == "finished" else progress

    def _no_such_run(self, run_id: str) -> MasisError:
        if self._is_case(run_id):
            newest = next(iter(self.workbench.runs.for_case(run_id)), None)
            has = f"its newest run is {named(newest.id)}" if newest else "it has no run yet; run_audit makes one"
            return InputError(
                f"{named(run_id)} is a case, not a run", cure=f"{has[:1].upper()}{has[1:]}.", field="runId"
            )
        near = near_run_ids(self.workbench, run_id)
        return InputError(
            f"there is no run {named(run_id)}{among(near)}", cure="list_queue gives the ids of runs.", field="runId"
        )

    def get_case(self, request: arguments.GetCase, watch: Watch) -> reports.CaseReport:
        """Return a case with its evidence and its runs."""
        return self.case(request.case_id)

    def case(self, case_id: str) -> reports.CaseReport:
        """Return a case with its evidence and its runs. Raises InputError naming near ids."""
        case = self._case(case_id, "caseId")
        runs = [
            {"run_id": run.id, "state": run.state, "started_at": run.started_at, "quality": run.quality}
            for run in self.workbench.runs.for_case(case_id)
        ]
        return reports.CaseReport(
            case=case.to_json_dict(),
            uri=reports.case_uri(case_id),
            state=self.workbench.cases.summary(case_id).state,
            evidence_ids=tuple(address(case_id, chunk.id) for chunk in case.evidence),
            runs=tuple(runs),
        )

    def list_queue(self, request: arguments.ListQueue, watch: Watch) -> reports.QueuePage:
        """Return one page of the cases that match."""
        filters = CaseFilter.model_fields.keys() & arguments.ListQueue.model_fields.keys()
        fields = {name: getattr(request, name) for name in sorted(filters)}
        page = page_of(request.cursor, fields)
        found = self.workbench.cases.find(CaseFilter(**fields, page=page, size=request.limit))
        more = page * request.limit < found.total
        return reports.QueuePage(
            cases=found.rows,
            total=found.total,
            next_cursor=cursor(page + 1, fields) if more else None,
            notes=() if found.total else tuple(self._unmatched(request)),
        )

    def _unmatched(self, request: arguments.ListQueue) -> Iterator[str]:
        """Yield which values of the filters occur in no case, with those that do."""
        facets = self.workbench.cases.facets()
        for name in ("states", "flags", "reasons", "fields", "datasets", "models", "reviewers"):
            known: dict[str, int] = getattr(facets, name)
            for value in getattr(request, name):
                if not known.get(value):
                    there = ", ".join(f"{named(each)} ({count:,})" for each, count in list(known.items())[:20] if count)
                    yield f"{name}: no case here has {named(value)}; there are: {there or 'none'}."

    def search_evidence(self, request: arguments.SearchEvidence, watch: Watch) -> reports.EvidencePage:
        """Return stored evidence by its words, with the ids that the other tools take."""
        page = page_of(request.cursor, [request.text, request.limit])
        found = self.workbench.store.evidence.with_words(
            request.text, limit=request.limit, offset=(page - 1) * request.limit
        )
        cases = map(self.workbench.store.cases.get, found.ids)
        chunks = [chunk for case in cases for chunk in best_chunks(case, request.text)]
        more = page * request.limit < found.total
        return reports.EvidencePage(
            evidence=tuple(chunks),
            total_cases=found.total,
            next_cursor=cursor(page + 1, [request.text, request.limit]) if more else None,
        )

    def _case(self, case_id: str, field: str) -> Case:
        try:
            return self.workbench.store.cases.get(case_id)
        except UnknownRecord as error:
            near = near_case_ids(self.workbench, case_id)
            raise InputError(
                f"there is no case {named(case_id)}{among(near)}",
                cure="list_queue and search_evidence give the ids of cases; run_audit also takes a case in full.",
                field=field,
            ) from error

    def _is_case(self, case_id: str) -> bool:
        try:
            self.workbench.cases.summary(case_id)
        except UnknownRecord:
            return False
        return True


class _ProgressReporter:
    """Turns the events of an audit into progress that only grows."""

    def __init__(self, settings: Settings, case: Case, watch: Watch) -> None:
        self._watch = watch
        self._before = 0 if case.answer and case.answer.strip() else 1
        self._total = float(settings.max_iterations * STEPS + self._before)
        self._done = 0.0

    def event(self, event: Event) -> None:
        """Take one event of the run."""
        where = f"iteration {event.iteration}, {event.step}" if event.iteration else str(event.step)
        match event.kind:
            case "run_started":
                resumed = event.data.get("resumed_after", 0)
                self._done = float(resumed * STEPS)
                self._advance(0.0, f"run {event.run_id} begins" if not resumed else f"run {event.run_id} is resumed")
            case "step_started":
                self._advance(0.5, where)
            case "step_finished":
                self._advance(0.5, f"{where} done")
            case "run_finished":
                self._advance(self._total - self._done, "done")
            case _:
                return

    def _advance(self, more: float, message: str) -> None:
        self._done = min(self._done + more, self._total)
        self._watch.report(Progress(self._done, self._total, message))


def _document(source: Source) -> SourceDocument:
    kind = (source.chunk.model_extra or {}).get("type")
    return SourceDocument(
        id=source.chunk.id,
        content=source.chunk.text,
        type=kind if isinstance(kind, str) else "",
        path=source.chunk.source,
    )


def _with_given_ids(found: CritiqueResult, given: dict[str, str]) -> CritiqueResult:
    """Return the result with each source under the id that the caller used."""

    def renamed(issue: Any) -> Any:
        return issue.model_copy(update={"related_source": given.get(issue.related_source, issue.related_source)})

    used = tuple(given.get(each, each) for each in found.metadata.sources_used)
    return found.model_copy(
        update={
            "issues": tuple(map(renamed, found.issues)),
            "remaining_issues": tuple(map(renamed, found.remaining_issues)),
            "metadata": found.metadata.model_copy(update={"sources_used": used}),
        }
    )
