"""The exam of a model: 32 short answers, half with one known fault, audited by the real roles.

    result = take_exam(exam_settings(settings, "openai:gpt-4o-mini"))
    result.passed, result.shortfalls

A model that judges well on public benchmarks may still accept answers that this workbench must not
accept, or reply in an unreadable form. The exam measures exactly that, with the prompts, code and
acceptance rule of real audits. ``cases.jsonl`` was written for it, with invented subjects, so that
no model knows the answers, and with kinds of faults in equal numbers.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache, reduce
from importlib import resources
from typing import NamedTuple

from masis.api.audits import audit_events
from masis.api.batch import BatchItem, audit_in_threads
from masis.api.exam_results import build_examinee_of_run
from masis.api.roles import calls_at_once, estimate, pin_versions
from masis.audit.measures.statistics import exact_bounds
from masis.errors import InputError
from masis.llm.estimates import CostEstimate
from masis.llm.role_plugins import fillable_roles
from masis.observers import observation
from masis.schema.base import utc_now
from masis.schema.calls import CallOutcome
from masis.schema.case import Case
from masis.schema.exam import EXAM_VERSION, FAILED_CALLS_MOST, ExamCount, ExamKindResult, ExamResult
from masis.schema.judge import JudgeBrief
from masis.schema.model_ref import ModelRef
from masis.schema.rules import MUST_LOOK
from masis.schema.run import Iteration, Run
from masis.settings import OFFLINE, Settings

EXAM_OVERRIDES = {
    "max_iterations": 1,
    "min_iterations": 1,
    "depth": "standard",
    "spot_check_share": 0.0,
    "review_revised": True,
    "accept_without_exam": True,
}
"""Only the original answer is judged; revising it costs calls and doesn't affect
the verdict.
"""

ANSWERS_WITHOUT_REPLY = 2
"""The number of answers after which the exam ends if no call got a reply.

A wrong key or address fails every call alike.
"""

NO_REPLY: tuple[CallOutcome, ...] = ("failed", "out_of_time", "stopped")
"""Outcomes that are due to the server or the connection and not to the model's judgement."""


class ExamCase(NamedTuple):
    """One answer of the exam.

    ``fault`` has the faulty words, which occur once in the answer; it is empty if the answer is
    sound.
    """

    case: Case
    kind: str
    fault: str

    @property
    def faulty(self) -> bool:
        """Whether the answer has a fault."""
        return bool(self.fault)


class MarkedAnswer(NamedTuple):
    """The result of the audit of one exam answer."""

    asked: ExamCase
    accepted: bool
    flagged: bool
    confirmed: bool


@cache
def exam_cases() -> tuple[ExamCase, ...]:
    """Return the answers of the exam, in a fixed order."""
    text = resources.files(__package__).joinpath("cases.jsonl").read_text(encoding="utf-8")
    cases = []
    for line in text.splitlines():
        row = json.loads(line)
        exam_data = row["metadata"]["exam"]
        cases.append(
            ExamCase(Case.model_validate(row), exam_data["kind"], exam_data.get("fault", ""))
        )
    return tuple(cases)


def exam_settings(settings: Settings, model: str = "") -> Settings:
    """Return the settings for taking the exam.

    Args:
        settings: The roles if no model is named; providers, prices, limits and thresholds.
        model: A model that fills every judging role. One that only verifies (``local:...``)
            verifies together with the offline critic and evaluator. Of two verifiers in a row
            (``offline,MODEL``), the second fills the other roles.

    Raises:
        SettingsError: A model can't be asked.

    """
    roles = {"drafter": OFFLINE, "reviser": OFFLINE}
    if model:
        last_model = ModelRef.parse(model).alone
        other_roles = OFFLINE if fillable_roles(last_model) == ("verifier",) else str(last_model)
        roles |= {"verifier": model, "critic": other_roles, "evaluator": other_roles}
    return pin_versions(settings.with_values({**EXAM_OVERRIDES, **roles}))


def estimate_exam(settings: Settings, judge: JudgeBrief | None = None) -> CostEstimate:
    """Return the most calls, tokens and US dollars that the exam may need under these settings,
    with the house rules of a judge version.
    """
    return reduce(
        CostEstimate.plus,
        (estimate(exam_case.case, settings, judge) for exam_case in exam_cases()),
    )


def no_guidance(case: Case) -> JudgeBrief | None:
    """Return None, for an exam by the default judge."""
    return None


def take_exam(
    settings: Settings,
    *,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
    stopped: Callable[[], bool] = lambda: False,
    judge: Callable[[Case], JudgeBrief | None] = no_guidance,
    now: Callable[[], str] = utc_now,
    seconds: Callable[[], float] = time.monotonic,
) -> ExamResult | None:
    """Audit every answer of the exam and return the result; nothing is stored.

    Args:
        settings: The judging roles, as from ``exam_settings``.
        on_progress: Called with the number of judged answers and their total.
        stopped: Called between answers; the exam ends once it returns true.
        judge: Returns what a team tells the judge about a case of the exam.
        now: Returns the time for the result.
        seconds: A clock for the duration of the exam.

    Returns:
        The result, with the reasons if the model didn't pass; None if the exam was stopped, because
        half an exam is inconclusive.

    Raises:
        SettingsError: The model can't be asked.
        InputError: Too many calls got no reply, so that the result would be about the server and
            not the model. The error quotes the most frequent error of those calls.

    """
    exam_answers = exam_cases()
    jobs = [BatchItem(number, exam_case.case) for number, exam_case in enumerate(exam_answers)]
    start_time = seconds()
    runs: list[Run] = []

    def audit(job: BatchItem, cancelled: Callable[[], bool]) -> Run:
        events = audit_events(job.case, settings, cancelled, judge(job.case))
        return observation.run_to_completion(events, None, observation.AuditStart(job.case))

    def stopping() -> bool:
        return stopped() or (len(runs) <= ANSWERS_WITHOUT_REPLY and _no_call_replied(runs))

    on_progress(0, len(jobs))
    for _, outcome in audit_in_threads(
        jobs, audit, at_once=calls_at_once(settings), stopping=stopping
    ):
        if isinstance(outcome, Run):
            runs.append(outcome)
            on_progress(len(runs), len(jobs))
    _check_replies(runs)
    if len(runs) < len(jobs):
        return None
    marked_answers = [
        mark_answer(exam_case, run) for exam_case, run in zip(exam_answers, runs, strict=True)
    ]
    return _exam_result(
        settings, marked_answers, runs, taken_at=now(), duration_s=seconds() - start_time
    )


def _no_call_replied(runs: Sequence[Run]) -> bool:
    """Return whether the first answers are audited and none of their calls got a reply."""
    calls = [call for run in runs for call in run.calls]
    return (
        len(runs) >= ANSWERS_WITHOUT_REPLY
        and bool(calls)
        and all(call.outcome in NO_REPLY for call in calls)
    )


def _check_replies(runs: Sequence[Run]) -> None:
    """Raise InputError if more calls got no reply than a model may leave unreadable."""
    calls = [call for run in runs for call in run.calls]
    errors = Counter(call.error for call in calls if call.outcome in NO_REPLY)
    if errors.total() <= FAILED_CALLS_MOST * len(calls):
        return
    ((most_frequent, _),) = errors.most_common(1)
    problem = f"{errors.total()} of {len(calls)} calls got no reply: {most_frequent}"
    raise InputError(
        f"The exam was not finished: {problem}".rstrip(". "),
        hint=(
            "Test the model on the Health page or with `masis health`, then start the exam again."
            " Give a slow server more time with the setting call_deadline_s."
        ),
    )


def mark_answer(exam_case: ExamCase, run: Run) -> MarkedAnswer:
    """Return the result of the audit of one exam answer."""
    flagged = any(reason.code in MUST_LOOK for reason in run.review_reasons)
    supported = bool(run.iterations) and _supports_fault(exam_case, run.iterations[0])
    return MarkedAnswer(
        exam_case,
        accepted=not run.needs_review,
        flagged=flagged,
        confirmed=exam_case.faulty and supported and not flagged,
    )


def _supports_fault(exam_case: ExamCase, iteration: Iteration) -> bool:
    """Return whether every claim about the faulty words is called supported."""
    start = iteration.answer.find(exam_case.fault)
    end = start + len(exam_case.fault)
    checks = [
        check
        for check in iteration.claims
        if check.claim.start is not None
        and check.claim.end is not None
        and check.claim.start < end
        and check.claim.end > start
    ]
    return bool(checks) and all(check.verdict == "supported" for check in checks)


def _exam_result(
    settings: Settings,
    marked_answers: Sequence[MarkedAnswer],
    runs: Sequence[Run],
    *,
    taken_at: str,
    duration_s: float,
) -> ExamResult:
    faulty = [marked_answer for marked_answer in marked_answers if marked_answer.asked.faulty]
    sound = [marked_answer for marked_answer in marked_answers if not marked_answer.asked.faulty]
    calls = [call for run in runs for call in run.calls]
    usage = [run.usage for run in runs]
    examinee = build_examinee_of_run(runs[0], settings)
    costs = [marked_answer.cost_usd for marked_answer in usage]
    return ExamResult(
        models=examinee.models,
        addresses={role: address or "" for role, address in examinee.addresses.items()},
        prompts=examinee.prompts,
        exam_version=EXAM_VERSION,
        taken_at=taken_at,
        accepted=_exam_count(marked_answer.accepted for marked_answer in faulty),
        found=_exam_count(marked_answer.flagged for marked_answer in faulty),
        confirmed=_exam_count(marked_answer.confirmed for marked_answer in faulty),
        flagged=_exam_count(marked_answer.flagged for marked_answer in sound),
        kinds=tuple(_results_by_kind(marked_answers)),
        calls=len(calls),
        failed_calls=sum(call.outcome != "answered" for call in calls),
        tokens=sum(
            marked_answer.prompt_tokens + marked_answer.completion_tokens for marked_answer in usage
        ),
        cost_usd=None if None in costs else sum(cost or 0.0 for cost in costs),
        seconds=round(duration_s, 1),
    )


def _exam_count(hits: Iterator[bool]) -> ExamCount:
    values = list(hits)
    low, high = exact_bounds(sum(values), len(values))
    return ExamCount(count=sum(values), of=len(values), low=low, high=high)


def _results_by_kind(marked_answers: Sequence[MarkedAnswer]) -> Iterator[ExamKindResult]:
    for kind in dict.fromkeys(answer.asked.kind for answer in marked_answers):
        answers_of_kind = [answer for answer in marked_answers if answer.asked.kind == kind]
        faulty = [answer for answer in answers_of_kind if answer.asked.faulty]
        sound = [answer for answer in answers_of_kind if not answer.asked.faulty]
        yield ExamKindResult(
            kind=kind,
            faulty=len(faulty),
            found=sum(answer.flagged for answer in faulty),
            accepted=sum(answer.accepted for answer in faulty),
            sound=len(sound),
            flagged=sum(answer.flagged for answer in sound),
        )
