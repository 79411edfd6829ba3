"""The desk by program: queue, case, decision, label, log and undo with the rules, rights and log of
the pages.

import masis
desk = masis.Desk("review.db", reviewer="Ada")
desk.audit(cases)
for row in desk.queue():
    case = desk.show(row.id)
    desk.decide(row.id, "reject", reason="unsupported")
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from pydantic import ValidationError

from masis.api.batch import BatchItem, Options, audit_all
from masis.errors import InputError, MasisError, UnknownRecord
from masis.schema.actor import Actor
from masis.schema.audit import Issue
from masis.schema.explain import explain, kind_of
from masis.schema.reading import FieldMap, id_text
from masis.schema.review import (
    SHOWN_UNKNOWN,
    Decision,
    LogEntry,
    TargetLabel,
    Verdict,
    answer_digest,
    answer_name,
)
from masis.schema.run import Run
from masis.schema.team import QueuePolicy
from masis.services.cases import CaseView
from masis.services.decision_rules import (
    OTHER,
    REASON_CODE,
    DecidedAnswer,
    DecisionProblem,
    code_of,
    problems,
    reason_text,
    reasons_for,
    seen_issues,
)
from masis.services.records import CaseFilter, CaseSummary, DecisionFilter
from masis.services.workbench import Workbench
from masis.settings import Settings, database_path, default_reviewer

SHOWN = ("answer", "verdicts", "scores", "issues")
"""What ``Desk.show`` shows of the machine's verdict, as a decision after it records."""

LabelRecord = Mapping[str, Any]
"""A label: ``{"text": "...", "label": "unsupported"}`` on words of the answer, with ``start`` where
they stand twice; with ``severity`` it reports an issue of one of the team's types, on the whole
answer where it has no ``text``."""

_ROW_FIELDS = {
    *("case", "case_id", "verdict", "reason", "note", "corrected_answer", "iteration", "labels"),
    *("machine_shown", "reviewer", "token", "acknowledge", "version", "line"),
}


class DecisionRowResult(NamedTuple):
    """What became of one row of a file of decisions: the entry it made, or why it made none."""

    line: int
    case: str
    verdict: str
    entry: LogEntry | None
    error: MasisError | None


class Desk:
    """A person's desk on one database; who has the file may do everything, under the name they
    give.

    Args:
        db: The database, which is made where there is none, or a workbench that is open. Default:
            as the commands find it.
        reviewer: The name that decisions are recorded under. Default: the one the person is logged
            in with.
        settings: Those of the workbench.

    Raises:
        StoreError: The database can't be read.

    """

    def __init__(
        self,
        db: str | PathLike[str] | Workbench | None = None,
        *,
        reviewer: str | None = None,
        settings: Settings | None = None,
    ) -> None:
        self._opened_here = not isinstance(db, Workbench)
        if not isinstance(db, Workbench):
            db = Workbench.open(database_path(None if db is None else Path(db)), settings)
        self.workbench, self.actor = (
            db,
            Actor(name=default_reviewer() if reviewer is None else reviewer),
        )
        self._seen: dict[str, int] = {}

    def __enter__(self) -> Desk:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database that this desk has opened; a workbench that it was given
        stays open.
        """
        if self._opened_here:
            self.workbench.close()

    def audit(
        self,
        cases: Any,
        *,
        map: FieldMap | None = None,  # noqa: A002 (the name that audit_many has)
        again: bool = False,
        concurrency: int | None = None,
        progress: bool = True,
        max_cost: float | None = None,
    ) -> list[Run]:
        """Store cases, audit them with the desk's settings, store the runs and return them, in the
        order of the cases.

        A case that has a finished run of the same text and settings is not audited again: that run
        is returned.

        Args:
            cases: As for ``audit_many``: cases, mappings, a data frame, an Arrow table or a Hugging
                Face data set.
            map: Which column or key holds a field where the names differ: ``{"answer":
                "response"}``.
            again: Audit every case again.
            concurrency: How many audits at once.
            progress: Whether to show a bar on stderr.
            max_cost: US dollars that all audits together may cost. Runs that it left out are not
                stored.

        Raises:
            InputError: As ``audit_many`` does.
            CaseConflict: A case is stored already with other content; of a list or frame nothing
                was audited then.

        """
        audits = self.workbench.audits

        def audit_one(job: BatchItem, settings: Settings, cancelled: Callable[[], bool]) -> Run:
            if not again and (run := audits.newest_finished(job.case, settings)) is not None:
                return run
            return audits.audit(self.actor, job.case, settings=settings, cancelled=cancelled)

        options = Options(concurrency, progress, max_cost, map)
        found = audit_all(
            cases,
            self.workbench.settings,
            audit_one,
            options,
            take=lambda case: self.workbench.cases.add_one(self.actor, case),
        )
        return list(found.values())

    def queue(self, *, limit: int = 50, **filters: Any) -> tuple[CaseSummary, ...]:
        """Return the cases that wait for this reviewer, the most pressing first.

        What audits found is left out where the team's policy hides it from the reviewer.

        Args:
            limit: How many cases, up to 1,000.
            filters: As the queue has them: ``text``, ``fields``, ``datasets``, ``tiers``, ``order``
                and so on.

        Raises:
            InputError: There is no such filter, or it can't have this value.

        """
        try:
            asked = CaseFilter(**{**filters, "size": limit})
        except ValidationError as error:
            raise explain(error) from error
        return self.workbench.cases.find_for(
            self.actor, self.workbench.team.open_to(self.actor, asked)
        ).rows

    def show(self, case_id: str) -> CaseView:
        """Return a case with its newest audit and decisions, as this reviewer may see it. Raises
        UnknownRecord.

        A later ``decide`` records that it was shown, and is refused where the case has changed
        meanwhile.
        """
        view = self._open(case_id)
        self._seen[case_id] = view.summary.version
        return view

    def _open(self, case_id: str) -> CaseView:
        """Return a case; raises UnknownRecord, which names the id that a wrong one may
        have meant.
        """
        try:
            return self.workbench.cases.open_for(self.actor, case_id)
        except UnknownRecord as error:
            ids = {
                each.casefold(): each
                for each in reversed(self.workbench.store.evidence.newest_ids("cases"))
            }
            near = difflib.get_close_matches(case_id[:200].casefold(), ids, n=1, cutoff=0.8)
            if not near:
                raise
            raise UnknownRecord(
                f"there is no case {case_id!r}. Did you mean {ids[near[0]]!r}?"
            ) from error

    def decide(
        self,
        case_id: str,
        verdict: Verdict,
        *,
        reason: str = "",
        note: str = "",
        corrected_answer: str | None = None,
        iteration: int = 1,
        labels: Iterable[LabelRecord] = (),
        machine_shown: Sequence[str] | None = None,
        acknowledge: bool = False,
        version: int | None = None,
        token: str | None = None,
    ) -> LogEntry:
        """Decide about an answer of a case, by the rules of the page.

        Args:
            case_id: The case.
            verdict: ``approve``, ``override``, ``reject`` or ``escalate``.
            reason: Why: the code of a reason (``unsupported``) or a sentence; a single word as
                ``other: WORD``. ``override`` and ``reject`` need one.
            note: Anything else worth recording.
            corrected_answer: What an ``override`` puts in the answer's place.
            iteration: Which answer of the audit is decided about: 1 is the original one, 2 its
                first revision.
            labels: Labels on words of the answer, and issues that the audit missed.
            machine_shown: What of the machine's verdict the reviewer saw; ``()`` for nothing.
                Default: what ``show`` showed on this desk, else that it is unknown, which never
                counts as blind.
            acknowledge: To approve an answer that has serious issues open, say that they were seen.
            version: The version of the case that was looked at (``summary.version``). Default: that
                of ``show``.
            token: The same token again makes no second decision.

        Raises:
            InputError: Something is missing or wrong; it names the field and the hint.
            UnknownRecord: There is no such case or iteration.
            StaleVersion: The case has changed since ``version``.
            CaseHeld: Another reviewer has taken the case.
            StoreError: Every decision that the case needs is made.

        """
        _check_verdict(verdict)
        view = self._open(case_id)
        run = view.run if view.run is not None and view.run.iterations else None
        answer = _decided_text(view, run, iteration)
        serious = _open_serious_issues(run, iteration)
        extra: dict[str, Any] = {"answer": _answer_name(view, run, iteration)}
        if verdict == "approve" and acknowledge:
            extra |= seen_issues(serious)
        words, code = _reason_and_code(verdict, reason)
        if code:
            extra[REASON_CODE] = code
        shown = self._shown_parts(case_id, view, machine_shown)
        try:
            decision = Decision(
                reviewer=self.actor.name,
                case_id=case_id,
                run_id=run.id if run else None,
                iteration=iteration if run else None,
                verdict=verdict,
                reason=words,
                note=note.strip(),
                corrected_answer=corrected_answer,
                labels=tuple(
                    _label_on_words(each, answer, place) for place, each in enumerate(labels)
                ),
                machine_shown=shown,
                token=token,
                extra=extra,
            )
        except ValidationError as error:
            raise explain(error) from error
        for problem in problems(decision, DecidedAnswer(answer, serious)):
            raise problem.as_error(_argument_hint(problem, verdict, run))
        seen = version if version is not None else self._seen.get(case_id, view.summary.version)
        entry = self.workbench.reviews.submit(
            self.actor, decision, seen_version=seen, shown=answer_digest(answer)
        )
        self._seen.pop(case_id, None)
        return entry

    def label(
        self, case_id: str, labels: Iterable[LabelRecord], *, acknowledge: bool = False
    ) -> LogEntry:
        """Add labels to this reviewer's decision on a case: a further entry repeats it with all
        labels.

        ``acknowledge`` says that serious issues were seen, as for ``decide``: who approved an
        answer before they were shown what the audit found approves it again now.

        Raises what ``decide`` does, and InputError where the reviewer has not decided the case.
        """
        decisions = (entry.decision for entry in self.workbench.reviews.individual(case_id))
        own = next(
            (each for each in decisions if each is not None and each.reviewer == self.actor.name),
            None,
        )
        if own is None:
            raise InputError(
                "has no decision of yours", hint="Decide it first, with the labels.", field="case"
            )
        answer = self.workbench.reviews.answer_of(own)
        added = tuple(_label_on_words(each, answer, place) for place, each in enumerate(labels))
        if not added:
            raise InputError(
                "names no label", hint='Give one: {"text": "...", "label": "..."}.', field="labels"
            )
        again = own.model_copy(
            update={"labels": (*own.labels, *added), "token": None, "about": None, "policy": None}
        )
        if acknowledge and own.verdict == "approve":
            seen = seen_issues(self.workbench.reviews.decided_answer(self.actor, own).serious)
            again = again.model_copy(update={"extra": again.extra | seen})
        version = self.workbench.cases.summary(case_id).version
        return self.workbench.reviews.submit(
            self.actor, again, seen_version=version, shown=answer_digest(answer)
        )

    def log(self, case_id: str | None = None, *, limit: int = 50) -> tuple[LogEntry, ...]:
        """Return the newest entries of the decision log, of one case or all, as this reviewer may
        see them.
        """
        policy = self.workbench.store.team.in_force(QueuePolicy)
        asked = DecisionFilter(
            case_id=case_id, size=limit, blind_to=self.actor.name, machine_shown=policy.machine
        )
        return self.workbench.reviews.entries(asked).rows

    def undo(self, entry_id: str) -> LogEntry:
        """Undo one entry of the log by a further one. Raises UnknownRecord, and StoreError where it
        decides nothing.
        """
        return self.workbench.reviews.undo(self.actor, entry_id)

    def decide_all(
        self, rows: Iterable[Mapping[str, Any]], *, dry_run: bool = False
    ) -> Iterator[DecisionRowResult]:
        """Make the decisions of rows, one after another, and yield what became of each; a wrong one
        stops no other.

        A row has ``case``, ``verdict`` and what ``decide`` takes; ``reviewer`` where it is not this
        desk's. What was shown to the reviewer is unknown unless ``machine_shown`` says it. The same
        row again makes no second decision.

        Args:
            rows: The rows.
            dry_run: Make every decision and take all of them back at the end: the results are those
                of a real run.

        """
        if not dry_run:
            yield from self._decide_each(rows)
            return
        found: list[DecisionRowResult] = []
        try:
            with self.workbench.store.transaction():
                found += self._decide_each(rows)
                raise _DryRunRollback
        except _DryRunRollback:
            yield from found

    def _decide_each(self, rows: Iterable[Mapping[str, Any]]) -> Iterator[DecisionRowResult]:
        for number, row in enumerate(rows, 1):
            held = row if isinstance(row, Mapping) else {}
            line = held.get("line", number)
            case, verdict = (str(held.get(key) or "") for key in ("case", "verdict"))
            try:
                with self.workbench.store.transaction():
                    entry = self._decide_row(row)
                yield DecisionRowResult(
                    line, entry.decision.case_id if entry.decision else case, verdict, entry, None
                )
            except MasisError as error:
                yield DecisionRowResult(
                    line, case or str(held.get("case_id") or ""), verdict, None, error
                )

    def _decide_row(self, row: Any) -> LogEntry:
        if not isinstance(row, Mapping):
            raise InputError(
                f"is {kind_of(row)}, must be an object",
                hint='Write {"case": "...", "verdict": "..."}.',
            )
        if unknown := [str(key) for key in row if key not in _ROW_FIELDS]:
            raise InputError(
                "is no part of a decision",
                hint=f"There are: {', '.join(sorted(_ROW_FIELDS))}.",
                field=unknown[0],
            )
        case_id = id_text(row.get("case", row.get("case_id")))
        if not isinstance(case_id, str) or not case_id:
            raise InputError("is missing", hint='Name the case as "case": "...".', field="case")
        case_id = self._resolve_case_id(case_id)
        _check_verdict(row.get("verdict"))
        given = {
            key: value
            for key, value in row.items()
            if key not in ("case", "case_id", "reviewer", "line")
        }
        given |= {"machine_shown": row.get("machine_shown", (SHOWN_UNKNOWN,))}
        given.setdefault("token", _row_token(row, self.actor.name))
        named = row.get("reviewer")
        desk = (
            self if named in (None, self.actor.name) else Desk(self.workbench, reviewer=str(named))
        )
        return desk.decide(case_id, **given)

    def _resolve_case_id(self, written: str) -> str:
        """Return the id of a case that a row names: a spreadsheet writes ``2.0`` for the case
        ``2``.
        """
        if not re.fullmatch(r"\d+\.0+", written):
            return written
        try:
            return self.workbench.store.cases.get(written).id
        except UnknownRecord:
            return written.partition(".")[0]

    def _shown_parts(
        self, case_id: str, view: CaseView, named: Sequence[str] | None
    ) -> tuple[str, ...]:
        """Return what of the machine's verdict was shown, as a decision records it."""
        if named is not None:
            return tuple(named)
        if view.machine_hidden or view.run is None:
            return ()
        return SHOWN if case_id in self._seen else (SHOWN_UNKNOWN,)


def _check_verdict(given: object) -> None:
    if given not in get_args(Verdict):
        hint = f"Use one of {', '.join(get_args(Verdict))}."
        raise InputError(f"is {str(given)[:40]!r}, which is no verdict", hint=hint, field="verdict")


class _DryRunRollback(Exception):
    """Ends a dry run: its transaction is rolled back."""


def _row_token(row: Mapping[str, Any], reviewer: str) -> str:
    content = json.dumps(
        {**row, "reviewer": row.get("reviewer", reviewer), "line": 0}, sort_keys=True, default=str
    )
    return f"row:{hashlib.sha256(content.encode(errors='surrogatepass')).hexdigest()[:40]}"


def _decided_text(view: CaseView, run: Run | None, iteration: int) -> str:
    if run is None or view.machine_hidden:
        if iteration != 1:
            raise InputError(
                f"is {iteration}, and only the original answer is shown",
                hint="Use 1.",
                field="iteration",
            )
        return view.case.answer or ""
    if not 1 <= iteration <= len(run.iterations):
        hint = f"The audit has answers 1 to {len(run.iterations)}; 1 is the original one."
        raise InputError(f"is {iteration}", hint=hint, field="iteration")
    return run.iterations[iteration - 1].answer


def _open_serious_issues(run: Run | None, iteration: int) -> tuple[Issue, ...]:
    """Return the serious issues that are open in an answer."""
    return (
        tuple(issue for issue in run.iterations[iteration - 1].issues if issue.major) if run else ()
    )


def _answer_name(view: CaseView, run: Run | None, iteration: int) -> str:
    """Return the name of the answer that is decided about, as the entry records it."""
    drafted = run is not None and run.draft is not None
    return answer_name(iteration if run else None, drafted=drafted)


def _argument_hint(problem: DecisionProblem, verdict: Verdict, run: Run | None) -> str:
    """Return what to do about a problem by the names of this desk's arguments and the command's
    options.
    """
    if problem.code in ("correction_missing", "correction_changes_nothing"):
        hint = (
            "Give the corrected answer (--corrected-answer or --corrected-file), or approve it as"
            " it is."
        )
        if run is not None and len(run.iterations) > 1:
            hint += " To take a revision as it is, approve it: iteration=2 (--iteration 2)."
        return hint
    if problem.code == "reason_missing":
        return f"Use one of {_reason_codes(verdict)}, or words."
    if problem.code == "serious_issues_open":
        return "Read them, then say acknowledge=True (--acknowledge)."
    return problem.hint


def _reason_codes(verdict: Verdict) -> str:
    return ", ".join(reason.code for reason in reasons_for(verdict) if reason.code != OTHER)


def _reason_and_code(verdict: Verdict, given: str) -> tuple[str, str]:
    """Return the words of a reason and its code: one of the fixed reasons by its code or words, or
    one's own words.
    """
    if (code := code_of(verdict, given)) not in ("", OTHER):
        return reason_text(code), code
    word, _, own = given.strip().partition(":")
    if word.lower() == OTHER and own.strip():
        return own.strip(), OTHER
    if re.fullmatch(r"[A-Za-z_-]+", given.strip()):  # one word is meant as a code
        raise InputError(
            f"is {given[:40]!r}, which is no reason to {verdict}",
            hint=f"Use one of {_reason_codes(verdict)}; or your words, as 'other: ...'.",
            field="reason",
        )
    return given.strip(), OTHER if given.strip() else ""


def _label_on_words(given: LabelRecord, answer: str, number: int) -> TargetLabel:
    """Return a label on words of the answer, found where they stand once."""
    field = f"labels[{number}]"
    if not isinstance(given, Mapping):
        raise InputError(
            f"is {kind_of(given)}", hint='Write {"text": "...", "label": "..."}.', field=field
        )
    text, start = given.get("text"), given.get("start")
    known: Literal["span", "answer", "claim"] = given.get("target") or (
        ("answer" if not text else "span") if given.get("severity") else "claim"
    )
    placed: dict[str, Any] = {}
    if text and known != "answer":
        if start is None:
            start = answer.find(text)
            if start < 0 or answer.find(text, start + 1) >= 0:
                problem = (
                    "stands nowhere in the answer"
                    if start < 0
                    else "stands in the answer more than once"
                )
                raise InputError(
                    problem,
                    hint="Copy the words from the answer, or give start.",
                    field=f"{field}.text",
                )
        placed = {"text": text, "start": start, "end": start + len(text)}
        if answer[placed["start"] : placed["end"]] != text:
            raise InputError(
                "does not stand at start",
                hint="Correct start, or leave it out.",
                field=f"{field}.text",
            )
    rest = {
        key: value
        for key, value in given.items()
        if key in ("label", "severity", "note") and value is not None
    }
    try:
        return TargetLabel(target=known, **placed, **rest)
    except ValidationError as error:
        found = explain(error)
        raise InputError(
            found.problem, hint=found.hint, field=f"{field}.{found.field or 'label'}"
        ) from error
