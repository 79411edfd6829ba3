"""Critique of drafts: a draft held against its sources, with the steps of an audit
(DRAFT-CRITIQUE-*).

    from masis.api.draft_critique import critique_draft
    found = critique_draft("What is the timeout?", "It is 30 seconds.", [{"id": "1", "content": "Timeout: 60 seconds"}])
    found.is_valid, found.issues, found.model_dump(by_alias=True)      # as the spec writes it: isValid, relatedSource

A draft is audited by the loop with the roles of the settings, and each revision is audited again.
What differs from an audit is what becomes of the issues: a draft need not cite, any issue is worth
a revision, and the result uses the names of draft critique. No judge is asked.
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
from masis.audit.issues import DRAFT_CRITIQUE_SEVERITY, DRAFT_CRITIQUE_TYPE
from masis.audit.loop import Clock, Roles
from masis.audit.measures import run_metrics
from masis.audit.revision import UNDECIDED_RULES, may_replace
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
from masis.schema.run import Iteration, Run
from masis.settings import Settings

# The issues of an audit in the words of draft critique (DRAFT-CRITIQUE-ISSUE).

_SUPERSEDED = {"unsupported_claim", "partly_supported_claim"}


def critique_issues(issues: Sequence[Issue], options: CritiqueOptions) -> Iterator[CritiqueIssue]:
    """Yield the issues in the words of draft critique, filtered by strictness and by which checks
    are on.

    A draft need not cite. A claim that the sources contradict fails two checks: they do not support
    it (factual), and they contradict it (contradictions). Where a claim leaves out the condition it
    holds under, that is the issue, not that no source says it without.
    """
    assumed = [issue for issue in issues if _tells_what_is_left_out(issue)]
    for issue in issues:
        if issue.rule == "uncited_sentence" or _is_superseded(issue, assumed):
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


def _tells_what_is_left_out(issue: Issue) -> bool:
    incomplete = DRAFT_CRITIQUE_TYPE[issue.type] == "incomplete"
    return incomplete and issue.source == "critic" and issue.major and issue.start is not None


def _is_superseded(issue: Issue, assumed: Sequence[Issue]) -> bool:
    if (
        issue.source != "claims"
        or issue.rule not in _SUPERSEDED
        or issue.start is None
        or issue.end is None
    ):
        return False
    return any(
        (other.start or 0) < issue.end and issue.start < (other.end or 0) for other in assumed
    )


def _is_checked(issue: Issue, type_: str, options: CritiqueOptions) -> bool:
    """Return whether the check an issue comes from is on; fabrications and unsafe advice are always
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
    """Hold a draft against its sources; with ``autoRevise``, revise it and hold the revision
    against them too.

    Options that are not given are those of the settings. Raises InputError for an empty draft or no
    sources, StepError if ``cancelled`` says so before anything was checked. A step that fails is
    reported in ``unscored``, never raised, and never makes a draft valid.
    """
    settings = settings or Settings()
    chosen = _merge_options(options, settings)
    case = _case_from_sources(query, draft, sources)
    clock = clock or Clock()
    with observation.observe(observation.DraftStart(query, draft, len(case.evidence))) as under_way:
        began = clock.seconds()
        loop_settings = settings.model_copy(update=_loop_settings(chosen))
        judges = roles or build_roles(loop_settings, in_steps=True)
        judges = replace(judges, critic=_RevisionRequestingCritic(judges.critic, chosen))
        work = loop.audit(
            case, judges, loop_settings, run_id=loop.new_run_id(), clock=clock, cancelled=cancelled
        )
        run = observation.run_to_completion(
            work, start=observation.AuditStart(case, "critique_draft")
        )
        result = _critique_result(
            run, case, loop_settings, chosen, (clock.seconds() - began) * 1000
        )
        under_way.result = result
    return result


async def critique_draft_async(
    query: str,
    draft: str,
    sources: Sources,
    options: Options = None,
    settings: Settings | None = None,
    roles: Roles | None = None,
) -> CritiqueResult:
    """``critique_draft`` for code that is async. Cancelling the task stops it.

    As many at once as are awaited, up to a limit (``AUDITS_THAT_WAIT``).
    """

    def work(cancelled: Callable[[], bool]) -> CritiqueResult:
        return critique_draft(query, draft, sources, options, settings, roles, cancelled=cancelled)

    waits = roles is not None or uses_models(settings or Settings())
    return await cancellable(work, partial(start_audit, calls_models=waits))


def metrics(results: Iterable[CritiqueResult]) -> DraftMetrics:
    """The spec's metrics ("Metrics to Track") over these critiques.

    A draft hallucinates where a high issue says that the sources do not support it; it needed a
    revision where anything was found.
    """
    known = tuple(run_metrics.of_draft(result) for result in results)
    return DraftMetrics(
        critique_hallucination_rate=_mean_known(draft.hallucination for draft in known),
        critique_revision_rate=_mean_known(draft.revision for draft in known),
        critique_latency_ms=_mean_known(draft.latency_ms for draft in known),
        critique_confidence_avg=_mean_known(draft.confidence for draft in known),
        claims_per_draft=_mean_known(draft.claims for draft in known),
    )


def _mean_known(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _merge_options(given: Options, settings: Settings) -> CritiqueOptions:
    """The options given over those of the settings (``{...defaultOptions,
    ...request.options}``).
    """
    usual = {
        "strictness": settings.strictness,
        "check_factual": settings.check_factual,
        "check_completeness": settings.check_completeness,
        "check_contradictions": settings.check_contradictions,
        "auto_revise": settings.draft_auto_revise,
        "max_revisions": settings.draft_max_revisions,
    }
    if given is None:
        return CritiqueOptions.model_validate(usual)
    read = options_of(CritiqueOptions, given)
    return CritiqueOptions.model_validate(
        usual | {name: getattr(read, name) for name in read.model_fields_set}
    )


def _loop_settings(options: CritiqueOptions) -> dict[str, Any]:
    """The loop as this spec wants it: a revision for any issue, audited again, and no judge.

    A claim that fails one of the two checks of claims may fail the other: the report keeps them
    apart.
    """
    return {
        "depth": "standard",  # this spec has options of its own for what is checked
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
    read = [_to_source_document(source, place) for place, source in enumerate(sources)]
    if not draft.strip():
        raise InputError("is empty", hint="Give the draft to be critiqued.", field="draft")
    if not read:
        raise InputError(
            "is empty", hint="Give at least one source to hold the draft against.", field="sources"
        )
    return check_case(
        Case(
            id="draft",
            query=query,
            answer=draft,
            evidence=tuple(each.as_evidence() for each in read),
        )
    )


def _to_source_document(given: Any, place: int) -> SourceDocument:
    if not isinstance(given, SourceDocument | Mapping):
        read = read_document(given, place, "sources")
        return SourceDocument(
            id=read.id or f"chunk_{place + 1}",
            content=read.content,
            type=read.type,
            path=read.path,
            relevance_score=read.score,
        )
    try:
        return SourceDocument.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise InputError(
            "is no source" if not first["loc"] else first["msg"].removeprefix("Input "),
            hint=(
                'Give {"id": "1", "content": "..."}, with type, path and relevanceScore where'
                " known."
            ),
            field=".".join((f"sources[{place}]", *map(str, first["loc"]))),
        ) from error


class _RevisionRequestingCritic:
    """The critic, asking for a revision wherever anything is found that this spec would report."""

    def __init__(self, critic: Critic, options: CritiqueOptions) -> None:
        self._critic, self._options = critic, options

    @property
    def judged_by(self) -> JudgedBy:
        return self._critic.judged_by

    def critique(self, context: AuditContext) -> CritiqueJudgement | Unscored:
        judgement = self._critic.critique(context)
        if isinstance(judgement, Unscored):
            return judgement
        own = audit_issues.raise_critic_issues(
            judgement.objections, context.answer, context.issues
        ).issues
        wrong = [issue for issue in (*context.issues, *own) if issue.rule not in UNDECIDED_RULES]
        found = any(critique_issues(wrong, self._options))
        return judgement._replace(needs_retry=found)


def _critique_result(
    run: Run, case: Case, settings: Settings, options: CritiqueOptions, ms: float
) -> CritiqueResult:
    if not run.iterations:
        raise StepError("The critique was stopped before anything was checked.")
    first = run.iterations[0]
    found = tuple(critique_issues(first.issues, options))
    report = first.claim_report
    unscored = (*_unscored_warnings(first), *_revision_warnings(run))
    # a draft need not cite, so that alone is no reason for a person to look
    accepting = settings.model_copy(update={"review_uncited_answers": False})
    reasons = acceptance.assess(
        run.iterations[:1], case, "no_issues", accepting, unexamined=run.acceptance.unexamined
    ).reasons
    result = CritiqueResult(
        is_valid=_is_valid(first, found),
        confidence=report.confidence,
        issues=found,
        suggestions=tuple(dict.fromkeys(issue.suggestion for issue in found if issue.suggestion)),
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
    left = tuple(critique_issues(best.issues, options))
    revised = {
        "revised_draft": best.answer,
        "revised_is_valid": _is_valid(best, left),
        "remaining_issues": left,
    }
    return result.model_copy(update=revised)


def _eligible(iterations: Sequence[Iteration], valid: bool) -> Iterator[Iteration]:
    """The draft and the revisions that were judged and may replace it; one that asserts nothing any
    more only for a draft not valid.
    """
    yield iterations[0]
    for revised in iterations[1:]:
        unscored = revised.critique.unscored
        judged = unscored is None or (unscored.code is None and not valid)
        if judged and may_replace(revised, iterations[0]):
            yield revised


def _faults(iteration: Iteration, options: CritiqueOptions) -> tuple[bool, int, int, float]:
    """What makes one version of a draft worse than another: not valid, high issues, issues, less
    quality.
    """
    found = tuple(critique_issues(iteration.issues, options))
    high = sum(issue.severity == "high" for issue in found)
    return (not _is_valid(iteration, found), high, len(found), -(iteration.quality_score or 0.0))


def _is_valid(iteration: Iteration, found: Sequence[CritiqueIssue]) -> bool:
    """Return whether no issue is high and nothing that was asked for is unscored
    (DRAFT-CRITIQUE-VALID).
    """
    report = iteration.claim_report
    scored = all(check.support is not None for check in iteration.claims)
    failed = (
        report.unscored
        or report.completeness_unscored
        or _is_failed_step(iteration.critique.unscored)
    )
    return scored and not failed and all(issue.severity != "high" for issue in found)


def _is_failed_step(unscored: Unscored | None) -> bool:
    """Return whether a step failed, rather than had nothing to judge."""
    return unscored is not None and unscored.code is not None


def _revision_warnings(run: Run) -> Iterator[str]:
    """Why there is no revision, or no further one, where that is nobody's verdict."""
    # it changed nothing, which is the reviser's verdict
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
    without = [check for check in iteration.claims if check.support is None]
    if without:
        reasons = dict.fromkeys(
            check.unscored.reason if check.unscored else check.issue or "" for check in without
        )
        yield (
            f"{len(without)} of {len(iteration.claims)} claims have no verdict:"
            f" {'; '.join(reasons)}"
        )
    if report.completeness_unscored:
        yield f"Completeness could not be checked: {report.completeness_unscored.reason}"
    if iteration.critique.unscored:
        yield f"The critique is unscored: {iteration.critique.unscored.reason}"
