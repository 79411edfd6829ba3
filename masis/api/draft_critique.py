"""Critique of drafts: checks a draft against its sources with the steps of an audit
(DRAFT-CRITIQUE-*).

    from masis.api.draft_critique import critique_draft
    sources = [{"id": "1", "content": "Timeout: 60 seconds"}]
    result = critique_draft("What is the timeout?", "It is 30 seconds.", sources)
    result.is_valid, result.issues
    result.model_dump(by_alias=True)      # the names of the spec: isValid, relatedSource

The loop audits the draft with the roles of the settings, and audits each revision again. The
difference from an audit is in the use of the issues: a draft need not cite, any issue is worth a
revision, and the result has the names of draft critique. No judge is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean
from typing import Any

from pydantic import ValidationError

from masis.api.roles import build_roles, uses_models
from masis.audit import acceptance, loop
from masis.audit import issues as audit_issues
from masis.audit.claims import is_reported
from masis.audit.context import AuditContext
from masis.audit.control.concurrency import cancellable, start_audit
from masis.audit.critique import Critic, CritiqueJudgement
from masis.audit.issues import DRAFT_CRITIQUE_SEVERITY
from masis.audit.loop import Clock, Roles
from masis.audit.measures import run_metrics
from masis.audit.revision import may_replace
from masis.errors import InputError, StepError
from masis.observers import observation
from masis.schema.audit import Issue, JudgedBy
from masis.schema.base import Unscored
from masis.schema.case import Case, check_case
from masis.schema.documents import is_document, read_document
from masis.schema.drafts import (
    CritiqueIssue,
    CritiqueMetadata,
    CritiqueOptions,
    CritiqueResult,
    DraftMetrics,
    SourceDocument,
    options_of,
)
from masis.schema.rules import DRAFT_CRITIQUE_TYPE, rule_of
from masis.schema.run import Iteration, Run
from masis.settings import Settings

# The issues of an audit in the terms of draft critique (DRAFT-CRITIQUE-ISSUE).

_SUPERSEDED = {"unsupported_claim", "partly_supported_claim"}


def critique_issues(issues: Sequence[Issue], options: CritiqueOptions) -> Iterator[CritiqueIssue]:
    """Yield the issues in the terms of draft critique, filtered by strictness and by the enabled
    checks.

    A draft need not cite. A claim that the sources contradict fails two checks: they don't support
    it (factual), and they contradict it (contradictions). If a claim leaves out the condition under
    which it holds, that is the issue, and not that no source supports it without the condition.
    """
    omissions = [
        issue
        for issue in issues
        if DRAFT_CRITIQUE_TYPE[issue.type] == "incomplete"
        and issue.source == "critic"
        and issue.major
        and issue.start is not None
    ]
    for issue in issues:
        if issue.rule == "uncited_sentence" or _is_superseded(issue, omissions):
            continue
        contradicted = issue.rule == "contradicted_claim"
        for type_ in (
            ("unsupported", "contradiction") if contradicted else (DRAFT_CRITIQUE_TYPE[issue.type],)
        ):
            unsupported = f"Claim not supported by sources: “{issue.quote}”"
            if _is_checked(issue, type_, options) and is_reported(
                issue.severity, options.strictness
            ):
                yield CritiqueIssue.model_validate(
                    {
                        "type": type_,
                        "severity": DRAFT_CRITIQUE_SEVERITY[issue.severity],
                        "description": (
                            unsupported
                            if contradicted and type_ == "unsupported"
                            else issue.description
                        ),
                        "location": issue.quote,
                        "suggestion": issue.suggestion or None,
                        "related_source": issue.evidence_ids[0] if issue.evidence_ids else None,
                    }
                )


def _is_superseded(issue: Issue, omissions: Sequence[Issue]) -> bool:
    if (
        issue.source != "claims"
        or issue.rule not in _SUPERSEDED
        or issue.start is None
        or issue.end is None
    ):
        return False
    return any(
        (other.start or 0) < issue.end and issue.start < (other.end or 0) for other in omissions
    )


def _is_checked(issue: Issue, type_: str, options: CritiqueOptions) -> bool:
    """Return whether the check of an issue is on; fabrications and unsafe advice are always
    reported.
    """
    if issue.type in ("hallucination", "safety"):
        return True
    if type_ == "incomplete":
        return options.check_completeness
    return options.check_contradictions if type_ == "contradiction" else options.check_factual


Sources = Iterable[Any]
Options = CritiqueOptions | Mapping[str, Any] | None


def critique_draft(
    query: str,
    draft: str,
    sources: Sources,
    options: Options = None,
    settings: Settings | None = None,
    roles: Roles | None = None,
    *,
    clock: Clock | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> CritiqueResult:
    """Check a draft against its sources; with ``autoRevise``, revise it and check the revision too.

    A step that fails is reported in ``unscored``, is never raised, and never makes a draft valid.

    Args:
        query: The question that the draft answers.
        draft: The draft.
        sources: The source documents, in any form that ``masis.pipeline.documents`` reads.
        options: The options of the critique; those left out are taken from the settings.
        settings: The settings of the audit.
        roles: The implementation of each role; built from the settings if None.
        clock: The source of times.
        cancelled: Returns whether to stop.

    Raises:
        InputError: The draft is empty, or there are no sources.
        StepError: ``cancelled`` returned true before anything was checked.

    """
    settings = settings or Settings()
    merged_options = _merge_options(options, settings)
    case = _case_from_sources(query, draft, sources)
    clock = clock or Clock()
    with observation.observe(
        observation.DraftStart(query, draft, len(case.evidence))
    ) as critique_observation:
        started = clock.seconds()
        loop_settings = settings.model_copy(update=_loop_settings(merged_options))
        draft_roles = roles or build_roles(loop_settings, in_steps=True)
        draft_roles = replace(
            draft_roles, critic=_RevisionRequestingCritic(draft_roles.critic, merged_options)
        )
        events = loop.audit(
            case,
            draft_roles,
            loop_settings,
            run_id=loop.new_run_id(),
            clock=clock,
            cancelled=cancelled,
        )
        run = observation.run_to_completion(
            events, start=observation.AuditStart(case, "critique_draft")
        )
        result = _critique_result(
            run, case, loop_settings, merged_options, (clock.seconds() - started) * 1000
        )
        critique_observation.result = result
    return result


async def critique_draft_async(
    query: str,
    draft: str,
    sources: Sources,
    options: Options = None,
    settings: Settings | None = None,
    roles: Roles | None = None,
) -> CritiqueResult:
    """Critique a draft in async code, like ``critique_draft``. Cancelling the task stops it.

    As many run at once as are awaited, up to a limit (``AUDITS_THAT_WAIT``).
    """

    def work(cancelled: Callable[[], bool]) -> CritiqueResult:
        return critique_draft(query, draft, sources, options, settings, roles, cancelled=cancelled)

    calls_models = roles is not None or uses_models(settings or Settings())
    return await cancellable(work, partial(start_audit, calls_models=calls_models))


def metrics(results: Iterable[CritiqueResult]) -> DraftMetrics:
    """Return the spec's metrics ("Metrics to Track") over these critiques.

    A draft hallucinates if a high issue says that the sources don't support it. It needed a
    revision if there was any issue.
    """
    measures = tuple(run_metrics.of_draft(result) for result in results)
    return DraftMetrics(
        critique_hallucination_rate=_mean_known(draft.hallucination for draft in measures),
        critique_revision_rate=_mean_known(draft.revision for draft in measures),
        critique_latency_ms=_mean_known(draft.latency_ms for draft in measures),
        critique_confidence_avg=_mean_known(draft.confidence for draft in measures),
        claims_per_draft=_mean_known(draft.claims for draft in measures),
    )


def _mean_known(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _merge_options(given: Options, settings: Settings) -> CritiqueOptions:
    """Return the given options over those of the settings (``{...defaultOptions,
    ...request.options}``).
    """
    defaults = {
        "strictness": settings.strictness,
        "check_factual": settings.check_factual,
        "check_completeness": settings.check_completeness,
        "check_contradictions": settings.check_contradictions,
        "auto_revise": settings.draft_auto_revise,
        "max_revisions": settings.draft_max_revisions,
    }
    if given is None:
        return CritiqueOptions.model_validate(defaults)
    options = options_of(CritiqueOptions, given)
    return CritiqueOptions.model_validate(
        defaults | {name: getattr(options, name) for name in options.model_fields_set}
    )


def _loop_settings(options: CritiqueOptions) -> dict[str, Any]:
    """Return the loop settings of this spec: a revision for any issue, audited again, and no judge.

    A claim that fails one of the two claim checks may fail the other, so both are on if either is;
    the report keeps them apart.
    """
    return {
        "depth": "standard",  # this spec has its own options for what is checked
        "strictness": options.strictness,
        "check_factual": options.check_factual or options.check_contradictions,
        "check_completeness": options.check_completeness,
        "check_contradictions": options.check_factual or options.check_contradictions,
        "max_iterations": 1 + (options.max_revisions if options.auto_revise else 0),
        "improvement_threshold": 0.0,
        "evaluate": "never",
    }


def _case_from_sources(query: str, draft: str, sources: Sources) -> Case:
    if isinstance(sources, str | bytes | Mapping | SourceDocument) or is_document(sources):
        raise InputError(
            "is one thing, not a list of sources", hint="Put it into a list.", field="sources"
        )
    documents = [_to_source_document(source, place) for place, source in enumerate(sources)]
    if not draft.strip():
        raise InputError("is empty", hint="Give the draft to be critiqued.", field="draft")
    if not documents:
        raise InputError(
            "is empty", hint="Give at least one source to check the draft against.", field="sources"
        )
    return check_case(
        Case(
            id="draft",
            query=query,
            answer=draft,
            evidence=tuple(document.as_evidence() for document in documents),
        )
    )


def _to_source_document(given: Any, place: int) -> SourceDocument:
    if not isinstance(given, SourceDocument | Mapping):
        document = read_document(given, place, "sources")
        return SourceDocument(
            id=document.id or f"chunk_{place + 1}",
            content=document.content,
            type=document.type,
            path=document.path,
            relevance_score=document.score,
        )
    try:
        return SourceDocument.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise InputError(
            "is not a source" if not first["loc"] else first["msg"].removeprefix("Input "),
            hint=(
                'Give {"id": "1", "content": "..."}, with type, path and relevanceScore where'
                " known."
            ),
            field=".".join((f"sources[{place}]", *map(str, first["loc"]))),
        ) from error


class _RevisionRequestingCritic:
    """A critic that asks for a revision for any issue that this spec would report."""

    def __init__(self, critic: Critic, options: CritiqueOptions) -> None:
        self._critic, self._options = critic, options

    @property
    def judged_by(self) -> JudgedBy:
        return self._critic.judged_by

    def critique(self, context: AuditContext) -> CritiqueJudgement | Unscored:
        judgement = self._critic.critique(context)
        if isinstance(judgement, Unscored):
            return judgement
        raised_issues = audit_issues.raise_issues(
            "critic", judgement.raw_issues, context.answer, context.issues
        ).issues
        reported_issues = [
            issue
            for issue in (*context.issues, *raised_issues)
            if not rule_of(issue.rule).is_undecided
        ]
        needs_revision = any(critique_issues(reported_issues, self._options))
        return judgement._replace(needs_retry=needs_revision)


def _critique_result(
    run: Run, case: Case, settings: Settings, options: CritiqueOptions, ms: float
) -> CritiqueResult:
    if not run.iterations:
        raise StepError("The critique was stopped before anything was checked.")
    first = run.iterations[0]
    issues = tuple(critique_issues(first.issues, options))
    report = first.claim_report
    unscored = (*_unscored_warnings(first), *_revision_warnings(run))
    # A draft need not cite, so that alone is no reason for a person to review it.
    acceptance_settings = settings.model_copy(update={"review_uncited_answers": False})
    reasons = acceptance.assess(
        run.iterations[:1],
        case,
        "no_issues",
        acceptance_settings,
        unexamined=run.acceptance.unexamined,
    ).reasons
    result = CritiqueResult(
        is_valid=_is_valid(first, issues),
        confidence=report.confidence,
        issues=issues,
        suggestions=tuple(dict.fromkeys(issue.suggestion for issue in issues if issue.suggestion)),
        unscored=unscored,
        needs_review=bool(reasons),
        review_reasons=reasons,
        metadata=CritiqueMetadata(
            facts_checked=report.facts_checked,
            facts_verified=report.facts_verified,
            facts_unscored=sum(check.support is None for check in first.claims),
            sources_used=report.sources_used,
            critique_time_ms=ms,
        ),
    )
    best = min(
        _eligible(run.iterations, result.is_valid),
        key=lambda iteration: _faults(iteration, options),
    )
    if not options.auto_revise or best is first:
        return result
    remaining_issues = tuple(critique_issues(best.issues, options))
    revised = {
        "revised_draft": best.answer,
        "revised_is_valid": _is_valid(best, remaining_issues),
        "remaining_issues": remaining_issues,
    }
    return result.model_copy(update=revised)


def _eligible(iterations: Sequence[Iteration], is_draft_valid: bool) -> Iterator[Iteration]:
    """Yield the draft and the judged revisions that may replace it.

    A revision that asserts nothing any more may replace only a draft that isn't valid.
    """
    yield iterations[0]
    for revised in iterations[1:]:
        unscored = revised.critique.unscored
        is_judged = unscored is None or (unscored.code is None and not is_draft_valid)
        if is_judged and may_replace(revised, iterations[0]):
            yield revised


def _faults(iteration: Iteration, options: CritiqueOptions) -> tuple[bool, int, int, float]:
    """Return a sort key that is higher for a worse version: not valid, high issues, issues, less
    quality.
    """
    issues = tuple(critique_issues(iteration.issues, options))
    high = sum(issue.severity == "high" for issue in issues)
    return (not _is_valid(iteration, issues), high, len(issues), -(iteration.quality_score or 0.0))


def _is_valid(iteration: Iteration, found: Sequence[CritiqueIssue]) -> bool:
    """Return whether no issue is high and no requested check is unscored (DRAFT-CRITIQUE-VALID)."""
    report = iteration.claim_report
    scored = all(check.support is not None for check in iteration.claims)
    critique_unscored = iteration.critique.unscored
    failed = (
        report.unscored
        or report.completeness_unscored
        # the step failed, as opposed to having nothing to judge
        or (critique_unscored is not None and critique_unscored.code is not None)
    )
    return scored and not failed and all(issue.severity != "high" for issue in found)


def _revision_warnings(run: Run) -> Iterator[str]:
    """Yield the reasons for a missing revision that are not the reviser's own decision."""
    # An unchanged answer is the reviser's decision.
    declined = run.iterations[-1].revision is not None
    for warning in run.warnings:
        if (warning.step == "revision" and not declined) or (
            warning.step is None and warning.code is None
        ):
            yield warning.message
    if run.termination_reason == "cancelled":
        yield "The critique was stopped before it ended."


def _unscored_warnings(iteration: Iteration) -> Iterator[str]:
    report = iteration.claim_report
    if report.unscored:
        yield f"The claims could not be checked: {report.unscored.reason}"
    without_verdict = [check for check in iteration.claims if check.support is None]
    if without_verdict:
        reasons = dict.fromkeys(
            check.unscored.reason if check.unscored else check.issue or ""
            for check in without_verdict
        )
        yield (
            f"{len(without_verdict)} of {len(iteration.claims)} claims have no verdict:"
            f" {'; '.join(reasons)}"
        )
    if report.completeness_unscored:
        yield f"Completeness could not be checked: {report.completeness_unscored.reason}"
    if iteration.critique.unscored:
        yield f"The critique is unscored: {iteration.critique.unscored.reason}"
