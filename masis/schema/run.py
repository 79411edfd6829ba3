"""The result of an audit: its iterations, the best of them, why it stopped and who must look."""

from __future__ import annotations

import hashlib
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pydantic import Field

from masis.errors import MAX_ITERATIONS_WARNING
from masis.schema.audit import (
    CitationAudit,
    ClaimCheck,
    ClaimReport,
    Critique,
    Draft,
    Escalation,
    Evaluation,
    Issue,
    Revision,
)
from masis.schema.base import Record, Share, Unscored
from masis.schema.calls import ModelCall, Step, Usage
from masis.schema.display import HtmlDisplay, OneLine
from masis.schema.issue_groups import about_same_words
from masis.schema.judge import JudgeUse
from masis.schema.rules import CHECKS, MUST_LOOK, ReviewCode, ReviewTier
from masis.schema.wording import count_noun

TerminationReason = Literal[
    "no_issues", "convergence", "max_iterations", "error", "cancelled", "no_answer"
]
ENDED_WELL: frozenset[TerminationReason] = frozenset({"no_issues", "convergence"})
"""The endings of a loop that converged.

The stored field ``Run.converged`` is true for ``convergence`` alone.
"""


class RunWarning(Record):
    """Something that a reader of the run must know.

    ``code`` is a CRITIC-ERR code if the specs define one.
    """

    code: str | None
    step: Step | None
    iteration: int | None
    message: str


class ReviewReason(Record):
    """One reason why a person should look: ``code`` for filters, ``message`` for people."""

    code: ReviewCode
    message: str

    @property
    def tier(self) -> ReviewTier:
        """``must_look`` if something is wrong or unsafe, else ``not_certified``."""
        return "must_look" if self.code in MUST_LOOK else "not_certified"


if TYPE_CHECKING:
    CheckName: TypeAlias = str
else:  # type checkers can't read a Literal that is made from a table; pydantic can
    CheckName = Literal[tuple(CHECKS)]


class AcceptanceCheck(Record):
    """One check of the acceptance rule: whether it passed, and its result in words."""

    name: CheckName
    passed: bool
    detail: str


class AcceptanceRecord(Record):
    """The result of the acceptance rule for a run: the version of the rule and all its checks.

    Attributes:
        score: The version of the fitted score that gave ``fault_probability``; None if none was
            fitted.
        guarantee: The number of the guarantee that waived the reasons in ``waived``.
        unexamined: The models that judged without having passed the exam; empty if all had.

    """

    rule: str
    checks: tuple[AcceptanceCheck, ...]
    score: int | None = None
    fault_probability: Share | None = None
    guarantee: int | None = None
    waived: tuple[ReviewCode, ...] = ()
    unexamined: str = ""

    @property
    def passed(self) -> bool:
        """Whether the run needs no person: all checks passed, or a guarantee waived the rest."""
        return self.guarantee is not None or all(check.passed for check in self.checks)


class Iteration(OneLine, Record):
    """One audited answer (CRITIC-LOOP-ITERATION).

    Attributes:
        revision: The revision made from this answer, which the next iteration audits. The last
            iteration has one only if it changed nothing, which ended the loop.
        changes_made: The changes that led to this answer; empty in the first iteration.
        step_ms: The duration of each step in milliseconds.

    """

    iteration_number: int = Field(ge=1)
    answer: str
    citation_audit: CitationAudit
    claims: tuple[ClaimCheck, ...]
    claim_report: ClaimReport
    issues: tuple[Issue, ...]
    critique: Critique
    revision: Revision | None = None
    evaluation: Evaluation | None = None
    quality_score: Share | None
    improvement_delta: float | None
    changes_made: str = ""
    step_ms: dict[str, float] = Field(default_factory=dict)
    calls: tuple[ModelCall, ...] = ()

    def __repr__(self) -> str:
        quality = "unscored" if self.quality_score is None else f"quality {self.quality_score:.2f}"
        issues = count_noun(len(about_same_words(self.issues)), "issue")
        counts = f"{count_noun(len(self.claims), 'claim')}, {issues}"
        return f"<Iteration {self.iteration_number}: {quality}, {counts}>"


class StepsDone(Record):
    """The finished steps of an unfinished iteration, so that a resumed run repeats no paid step.

    A step that isn't done yet is None. ``issues`` holds all issues found so far; the critic's are
    added once it has replied.
    """

    iteration_number: int = Field(ge=1)
    claims: tuple[ClaimCheck, ...] = ()
    claim_report: ClaimReport | None = None
    issues: tuple[Issue, ...] = ()
    critique: Critique | None = None
    evaluation: Evaluation | None = None
    step_ms: dict[str, float] = Field(default_factory=dict)
    calls: tuple[ModelCall, ...] = ()

    def with_more(self, more: StepsDone) -> StepsDone:
        """Return a copy with the results of a further step of the same iteration.

        The calls of that step are appended.
        """
        updates = {name: getattr(more, name) for name in more.model_fields_set}
        return self.model_copy(update={**updates, "calls": (*self.calls, *more.calls)})


class LocalModel(Record):
    """A model file on this machine that filled a role, with its location and sha256.

    Attributes:
        revision: The commit of the hub's repository; None for a model from disk.
        licence: From the model card; None if the card doesn't say.
        languages: From the model card; None if the card doesn't say.
        bytes: The size of the weights.

    """

    name: str
    sha256: str
    format: Literal["onnx", "safetensors", "pytorch"]
    file: str
    bytes: int
    revision: str | None = None
    licence: str | None = None
    languages: tuple[str, ...] | None = None


class RunVersions(Record):
    """The versions that judged: application, rubric, offline rules and prompts.

    ``rubric`` covers rules and constants. ``local_models`` are the model files that roles used on
    this machine. ``judge`` is the digest of the team's guidance, empty for the default judge.
    """

    app: str
    rubric: str
    offline_rules: str | None
    prompts: dict[str, str] = Field(default_factory=dict)
    local_models: tuple[LocalModel, ...] = ()
    judge: str = ""

    def flat(self) -> dict[str, str]:
        """Return the versions in one mapping, as a decision records them.

        Prompts are named ``prompt.critic`` and so on.
        """
        rules = {"offline_rules": self.offline_rules} if self.offline_rules else {}
        prompts = {f"prompt.{role}": prompt for role, prompt in self.prompts.items()}
        files = {f"sha256.{model.name}": model.sha256 for model in self.local_models}
        judge = {"judge": self.judge} if self.judge else {}
        return {"app": self.app, "rubric": self.rubric, **rules, **prompts, **files, **judge}


class Run(HtmlDisplay, Record):
    """One audit of one case (CRITIC-LOOP-OUTPUT). Times are ISO 8601 in UTC.

    Attributes:
        best: Index into ``iterations``; None if no iteration was finished.
        improvement_percentage: None if the first iteration is unscored or scored 0.
        acceptance: The checks behind ``needs_review``.
        loose_calls: Model calls that belong to no draft and no finished iteration.
        usage: The sum over all calls.
        judge: The judge version, with the cases that it was shown; None for the default judge.

    """

    id: str
    case_id: str
    case_digest: str
    started_at: str
    finished_at: str
    models: dict[str, str]
    settings: dict[str, Any]
    versions: RunVersions
    draft: Draft | None = None
    iterations: tuple[Iteration, ...]
    best: int | None
    final_answer: str
    final_quality_score: Share | None
    improvement_percentage: float | None
    total_iterations: int
    converged: bool
    termination_reason: TerminationReason
    needs_review: bool
    review_reasons: tuple[ReviewReason, ...]
    acceptance: AcceptanceRecord
    spot_check: bool = False
    warnings: tuple[RunWarning, ...] = ()
    unscored: Unscored | None = None
    loose_calls: tuple[ModelCall, ...] = ()
    usage: Usage = Usage()
    judge: JudgeUse | None = None

    def __repr__(self) -> str:
        """Return one line with the original answer first.

        A notebook or debugger would otherwise print every iteration.
        """
        quality = "unscored" if self.quality is None else f"quality {self.quality:.2f}"
        revised = "" if self.revised_quality is None else f", revised {self.revised_quality:.2f}"
        issues = (
            count_noun(len(about_same_words(self.original.issues)), "issue")
            if self.original
            else "not audited"
        )
        iterations = count_noun(self.total_iterations, "iteration")
        ended = self.termination_reason.replace("_", " ")
        state = "needs review" if self.needs_review else "auto-accepted"
        why = f": {self.review_reasons[0].message.rstrip('.')}" if self.review_reasons else ""
        of = repr(self.case_id[:80])
        if self.termination_reason == "no_answer":
            return f"<Run of {of}: no answer, {state}{why}>"
        return (
            f"<Run of {of}: {quality}{revised}, {issues}, {iterations} (ended by {ended}),"
            f" {state}{why}>"
        )

    @property
    def original(self) -> Iteration | None:
        """The iteration of the original answer. All unqualified figures are about this one."""
        return self.iterations[0] if self.iterations else None

    @property
    def revised(self) -> Iteration | None:
        """The iteration of the best revision: the chosen one, else the highest-scoring one."""
        if self.best:
            return self.iterations[self.best]
        return max(
            self.iterations[1:], key=lambda iteration: iteration.quality_score or -1.0, default=None
        )

    @property
    def quality(self) -> float | None:
        """The quality of the original answer, 0 to 1; None if unscored."""
        return self.original.quality_score if self.original else None

    @property
    def revised_quality(self) -> float | None:
        """The quality of the best revision, 0 to 1; None if unscored or if there is no revision."""
        return self.revised.quality_score if self.revised else None

    @property
    def auditor(self) -> str:
        """Identifies the auditor: a digest of models, prompts, rubric, weights and house rules."""
        judged_by = {name: value for name, value in self.versions.flat().items() if name != "app"}
        parts = sorted({**self.models, **judged_by}.items())
        return hashlib.sha256(
            "\n".join(f"{name}={value}" for name, value in parts).encode()
        ).hexdigest()[:12]

    @property
    def calls(self) -> tuple[ModelCall, ...]:
        """Every call to a model, in the order of steps."""
        drafted = self.draft.calls if self.draft else ()
        return (
            *drafted,
            *(call for iteration in self.iterations for call in iteration.calls),
            *self.loose_calls,
        )

    def usage_by_role(self) -> dict[str, Usage]:
        """Return the usage of each role (REQ-CRITIC-NFR-012)."""
        roles = dict.fromkeys(call.role for call in self.calls)
        return {role: Usage.of(call for call in self.calls if call.role == role) for role in roles}

    @property
    def escalation(self) -> Escalation | None:
        """The escalation of all iterations together; None if only one verifier judged."""
        escalations = [
            it.claim_report.escalation
            for it in self.iterations
            if it.claim_report.escalation is not None
        ]
        return reduce(Escalation.plus, escalations) if escalations else None

    @property
    def unconfirmed_offline(self) -> int:
        """The number of the original answer's claims that the offline checks couldn't confirm.

        Only counts if there is evidence. A verifier model could decide these claims.
        """
        original = self.original
        if original is None or any(
            reason.code == "nothing_checked" for reason in self.review_reasons
        ):
            return 0
        return sum(
            check.verdict == "unverifiable" and check.judged_by == "offline"
            for check in original.claims
        )

    @property
    def ended_well(self) -> bool:
        """Whether the loop converged as metrics count it.

        Nothing serious was left, or revisions no longer helped.
        """
        return self.termination_reason in ENDED_WELL

    @property
    def best_iteration(self) -> Iteration | None:
        """The iteration whose answer is the final one; None if no iteration was finished."""
        return None if self.best is None else self.iterations[self.best]

    @property
    def incomplete(self) -> bool:
        """Whether a failure left the run incomplete.

        It ended with an error, or one of its steps is unscored.
        """
        failed = any(
            warning.code not in (None, MAX_ITERATIONS_WARNING) for warning in self.warnings
        )
        return self.termination_reason == "error" or failed

    def summary(self) -> tuple[dict[str, Any], ...]:
        """Return one row per iteration: number, quality, issues and changes (REQ-CRITIC-020)."""
        return tuple(
            {
                "iteration_number": iteration.iteration_number,
                "quality_score": iteration.quality_score,
                "issues_identified": [issue.description for issue in iteration.issues],
                "changes_made": iteration.changes_made,
                "improvement_delta": iteration.improvement_delta,
            }
            for iteration in self.iterations
        )


class Event(Record):
    """Something that happened in a run, streamed to viewers and stored.

    ``data`` is small and JSON-ready: counts, scores and verdicts, but never the text of an answer
    or of evidence.
    """

    run_id: str
    case_id: str
    seq: int
    at: str
    kind: Literal[
        "run_started",
        "step_started",
        "step_finished",
        "call_retried",
        "call_repaired",
        "call_finished",
        "iteration_finished",
        "warning",
        "run_finished",
    ]
    iteration: int | None = None
    step: Step | None = None
    message: str = ""
    data: dict[str, Any] = Field(default_factory=dict)
