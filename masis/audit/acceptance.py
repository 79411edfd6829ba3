"""Decides whether a run needs review by a person.

The loop, the desk, ``audited``, MCP and pytest all use this rule.
An answer is auto-accepted only if every check passes. Each failed check gives a reason with a code
and a tier. docs/trust.md explains the rule to users. Nothing here reads a store or a model.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from math import prod
from typing import NamedTuple

from masis.audit.control import routing
from masis.audit.critique import ALWAYS_HALLUCINATION, NOT_RUN, SOURCE_CONFLICT
from masis.schema.audit import ClaimCheck, Issue, Score
from masis.schema.case import Case, ClaimVerdict, Evidence, Severity
from masis.schema.issue_groups import about_same_words
from masis.schema.rules import GROUNDLESS, REVIEW_CODES, RULES, ReviewCode
from masis.schema.run import (
    AcceptanceCheck,
    AcceptanceRecord,
    CheckName,
    Iteration,
    ReviewReason,
    Run,
    TerminationReason,
)
from masis.schema.wording import count_noun, describe_absent_figures, describe_marked_words, shorten
from masis.settings import OFFLINE, Settings

RULE_VERSION = "9"
"""The version of the rule, raised whenever a check changes and stored with each run."""

FLAGGED_VERDICTS: tuple[tuple[ClaimVerdict, ReviewCode, str], ...] = (
    ("contradicted", "contradicted_claim", "The evidence contradicts {}."),
    ("unsupported", "unsupported_claim", "The evidence does not support {}."),
    ("partial", "partial_claim", "The evidence supports {} only in part."),
)


class Acceptability(NamedTuple):
    """The result of the rule: the checks with their results, and every reason for review."""

    acceptance: AcceptanceRecord
    reasons: tuple[ReviewReason, ...]


class _Check(NamedTuple):
    """One check: its name, its result in words, and the reasons for review if it fails."""

    name: CheckName
    detail: str
    reasons: tuple[ReviewReason, ...] = ()


def _failed_check(name: CheckName, detail: str, code: ReviewCode, message: str) -> _Check:
    return _Check(name, detail, (ReviewReason(code=code, message=message),))


def assess(
    iterations: Sequence[Iteration],
    case: Case,
    termination: TerminationReason,
    settings: Settings,
    *,
    chosen: int | None = None,
    unexamined: str = "",
) -> Acceptability:
    """Apply the rule to the original answer, which reviewers see first and which may be in use.

    If a revision was chosen and the settings accept an unread one (``review_revised`` off), the
    rule applies to the revision. The list of reasons is empty if and only if every check passes.

    Args:
        iterations: The iterations of the run.
        case: The audited case.
        termination: How the run ended.
        settings: The settings with the thresholds.
        chosen: The index of the iteration that a stored run chose; the best one if None.
        unexamined: The judging models that have not passed the exam; empty if all have.

    """
    chosen = routing.best_index(iterations) if chosen is None else chosen
    if termination == "no_answer":
        checks = [_check_answered(case)]
    elif chosen is None:
        no_iteration = _failed_check(
            "checkable",
            "no iteration was finished",
            "nothing_checked",
            "No iteration was finished.",
        )
        checks = [_check_answered(case), no_iteration, _check_ending(termination)]
    else:
        judged = iterations[0 if settings.review_revised else chosen]
        checks = [
            _check_answered(case),
            _check_references(judged),
            _check_hallucination(judged),
            _check_claim_verdicts(judged),
            _check_serious_issues(judged),
            _check_safety(judged),
            _check_instructions(judged, iterations[0]),
            _check_screening(case, settings),
            _check_original(iterations[0], chosen, settings),
            _check_threshold(
                "confidence",
                judged.critique.confidence,
                settings.review_threshold,
                "low_confidence",
            ),
            _check_threshold(
                "quality", judged.quality_score, settings.review_quality, "low_quality"
            ),
            _check_disagreement(judged, settings),
            _check_scored(judged),
            _check_checkable(judged, case.evidence),
            _check_limits(judged),
            _check_examined(unexamined, settings),
            _check_cites(judged, case.evidence, settings),
            _check_ending(termination),
        ]
    acceptance = AcceptanceRecord(
        rule=RULE_VERSION,
        checks=tuple(
            AcceptanceCheck(name=name, passed=not reasons, detail=detail)
            for name, detail, reasons in checks
        ),
        unexamined=unexamined,
    )
    return Acceptability(acceptance, tuple(reason for check in checks for reason in check.reasons))


def _check_answered(case: Case) -> _Check:
    """Check that the system answered.

    A refusal or failure needs review even if an answer was drafted here.
    """
    unanswered = case.unanswered
    if unanswered is None:
        return _Check(
            "answered",
            "the system answered" if (case.answer or "").strip() else "the case has no answer",
        )
    code: ReviewCode = "answer_refused" if unanswered.code == "refused" else "answer_failed"
    return _failed_check("answered", f"no answer: {unanswered.code}", code, unanswered_reason(case))


def unanswered_reason(case: Case) -> str:
    """Return the reason why the system gave no answer as a sentence, or "" if it gave one."""
    unanswered = case.unanswered
    if unanswered is None:
        return ""
    sentence = (
        "The system refused to answer"
        if unanswered.code == "refused"
        else "The call of the system failed"
    )
    message = " ".join(unanswered.message.split())
    sentence = f"{sentence}: {message}" if message else sentence
    return sentence if sentence.endswith((".", "!", "?", "…")) else f"{sentence}."


def flagged_reasons(iteration: Iteration) -> tuple[ReviewReason, ...]:
    """Return the reasons of tier ``must_look`` that an audited answer gives by itself."""
    checks = (
        _check_references,
        _check_hallucination,
        _check_claim_verdicts,
        _check_serious_issues,
        _check_safety,
    )
    results = [*(check(iteration) for check in checks), _check_instructions(iteration, iteration)]
    return tuple(
        reason for check in results for reason in check.reasons if reason.tier == "must_look"
    )


def claim_reasons(checks: Sequence[ClaimCheck]) -> tuple[ReviewReason, ...]:
    """Return the reasons why these claims don't pass.

    There are none if the evidence supports all claims and contradicts none of them. An undecided
    claim isn't flagged as wrong, but it isn't certified either. The same applies to a figure that
    isn't in the evidence and may be calculated, and to a word that a tagger marks, even if a second
    verifier supports the claim. The check ``scored`` handles claims without a verdict.
    """
    verdicts = [check.verdict for check in checks]
    reasons = [
        ReviewReason(code=code, message=template.format(count_noun(count, "claim")))
        for verdict, code, template in FLAGGED_VERDICTS
        if (count := verdicts.count(verdict))
    ]
    supported_but_contradicted = [
        check for check in checks if check.verdict == "supported" and check.contradictions
    ]
    if count := sum(not check.sources_disagree for check in supported_but_contradicted):
        message = (
            f"The evidence seems to contradict {count_noun(count, 'claim')} that it supports"
            " otherwise."
        )
        reasons.append(ReviewReason(code="contradicted_claim", message=message))
    if count := sum(check.sources_disagree for check in supported_but_contradicted):
        message = f"The sources disagree on {count_noun(count, 'claim')}."
        reasons.append(ReviewReason(code="conflicting_evidence", message=message))
    if count := verdicts.count("unverifiable"):
        message = f"{count_noun(count, 'claim')} could not be confirmed."
        reasons.append(ReviewReason(code="unconfirmed_claim", message=message))
    if figures := [figure.claim_text for check in checks for figure in check.figures]:
        message = f"{describe_absent_figures(figures)}."
        reasons.append(ReviewReason(code="figure_not_in_evidence", message=message))
    if marked := [words.claim_text for check in checks for words in check.marked]:
        reasons.append(
            ReviewReason(code="words_marked", message=f"{describe_marked_words(marked)}.")
        )
    return tuple(reasons)


def drawn_for_spot_check(case_id: str, settings: Settings) -> bool:
    """Return whether a run that needs no review is drawn for a spot check.

    The draw depends only on the recorded seed and the case's id, so repeated audits of a case, in
    any order, give the same draw.
    """
    return (
        random.Random(f"{settings.spot_check_seed}:{case_id}").random() < settings.spot_check_share
    )


WAIVABLE: frozenset[ReviewCode] = frozenset(
    code for code, row in REVIEW_CODES.items() if row.waivable
)
"""Reasons of tier ``not_certified`` that a guarantee may waive.

They are doubts of a finished audit about the original answer.
A person must still review figures that aren't in the evidence, words that a tagger marks,
revisions, interrupted audits, unscored steps, answers over a limit or without a critic, conflicting
studies, and drafts from a screening.
"""


def is_coverable(run: Run) -> bool:
    """Return whether a guarantee may accept a run.

    It may if the original answer was chosen and only waivable reasons are left. An answer that was
    drafted here, from a screening or from evidence, always needs a person.
    """
    return (
        run.best == 0
        and run.draft is None
        and all(reason.code in WAIVABLE for reason in run.review_reasons)
    )


def waive(assessment: Acceptability, *, guarantee: int) -> Acceptability:
    """Return an assessment whose reasons a guarantee waives.

    Raises:
        ValueError: A reason can't be waived.

    """
    codes = tuple(dict.fromkeys(reason.code for reason in assessment.reasons))
    if not WAIVABLE.issuperset(codes):
        raise ValueError(f"no guarantee waives {', '.join(sorted(set(codes) - WAIVABLE))}")
    return Acceptability(
        assessment.acceptance.model_copy(update={"guarantee": guarantee, "waived": codes}), ()
    )


FAULT_OF_CLAIM: dict[ClaimVerdict, float] = {
    "contradicted": 0.8,
    "unsupported": 0.8,
    "partial": 0.5,
    "unverifiable": 0.2,
    "unscored": 0.2,
    "supported": 0.02,
}
"""The probability that a claim with this verdict is faulty.

The values are meant to order a queue and aren't calibrated. They assume that at least four of five
flagged claims are faulty. In the answers written for testing, one claim in five is faulty.
"""

FAULT_OF_ISSUE: dict[Severity, float] = {"critical": 0.8, "high": 0.5, "medium": 0.1, "low": 0.02}
FAULT_OF_REFERENCE, FAULT_OF_HALLUCINATION, FAULT_OF_DOUBT = 0.9, 0.6, 0.3


def fault_probability(iteration: Iteration) -> float:
    """Estimate the probability that an audited answer is faulty, for the order of the queue.

    The signals (the verdict on each claim, each fabricated reference, each issue from the critic)
    are treated as independent, so the answer is sound only if none of them is a real fault. Low
    confidence adds a little.
    """
    confidence = iteration.critique.confidence
    fault_probabilities = [FAULT_OF_DOUBT * (1.0 - (0.5 if confidence is None else confidence))]
    audit = iteration.citation_audit
    fault_probabilities += [FAULT_OF_REFERENCE] * len(
        (*audit.invalid_citations, *audit.carried_references)
    )
    fault_probabilities += [_claim_fault_probability(check) for check in iteration.claims]
    fault_probabilities += [
        FAULT_OF_ISSUE[issue.severity] for issue in iteration.issues if issue.source == "critic"
    ]
    if iteration.critique.hallucination_detected and not _has_flagged_words(iteration):
        fault_probabilities.append(FAULT_OF_HALLUCINATION)
    return 1.0 - prod(1.0 - probability for probability in fault_probabilities)


def _claim_fault_probability(check: ClaimCheck) -> float:
    """Return the probability that a claim is faulty, by its verdict and its support."""
    if check.verdict == "supported" and check.contradictions:
        return FAULT_OF_CLAIM["partial"]
    if check.verdict == "unverifiable" and check.support is not None:
        return 2 * FAULT_OF_CLAIM["unverifiable"] * (1.0 - check.support)
    return FAULT_OF_CLAIM[check.verdict]


def disagreement(iteration: Iteration) -> float:
    """Return how far apart citation engine, critic and evaluator are, 0 to 1.

    Each rates the answer: the citations by their penalty factor, the critic by its confidence and
    the evaluator by faithfulness. The last two are taken before the citation rules change them,
    because afterwards the three could hardly disagree. With fewer than two ratings there is no
    confirmation, which counts as 1.
    """
    ratings = list(_rate_answer(iteration).values())
    return max(ratings) - min(ratings) if len(ratings) > 1 else 1.0


def _rate_answer(iteration: Iteration) -> dict[str, float]:
    """Return the available ratings of an answer by the citation check, the critic and the
    evaluator.
    """
    ratings = {"the citation check": iteration.citation_audit.penalty_factor}
    confidence = _raw_score(iteration.critique.scores, "confidence", iteration.critique.confidence)
    if confidence is not None:
        ratings["the critic"] = confidence
    if iteration.evaluation is not None:
        faithfulness = _raw_score(
            iteration.evaluation.scores, "faithfulness", iteration.evaluation.faithfulness
        )
        if faithfulness is not None:
            ratings["the evaluator"] = faithfulness
    return ratings


def contested_words(iteration: Iteration, settings: Settings) -> tuple[ReviewReason, ...]:
    """Return the reasons for review where critic and verifier disagree about the same words.

    There are two kinds of disagreement. In the first, the critic says that the evidence doesn't
    support the words, or the answer as a whole, and the verifier found nothing against them. An
    issue of severity low is usually about wording (three of 23 sound demo answers have one), so it
    counts only if the critic calls the words contradicted or invented. In the second, the verifier
    found words contradicted, and the critic didn't object to them or to the answer.

    The offline critic derives its issues from the verifier's verdicts, so it can't disagree.
    """
    doubted = [
        issue
        for issue in iteration.issues
        if issue.source == "critic"
        and issue.type in GROUNDLESS
        and (issue.severity != "low" or issue.type in ALWAYS_HALLUCINATION)
        and issue.rule != SOURCE_CONFLICT
        and not _is_doubted_by_others(issue, iteration)
    ]
    reasons = []
    if doubted:
        quoted_words = _quote_first(issue.quote or issue.description for issue in doubted)
        message = (
            f"The critic says that the evidence doesn't support {quoted_words}; the claim check"
            " found nothing against it."
        )
        reasons.append(ReviewReason(code="disagreement", message=message))
    confidence = _raw_score(iteration.critique.scores, "confidence", iteration.critique.confidence)
    is_content = confidence is not None and confidence >= settings.review_threshold
    if is_content and iteration.critique.judged_by.model != OFFLINE:
        critic_flags = [
            issue
            for issue in iteration.issues
            if issue.source == "critic" and issue.type in GROUNDLESS
        ]
        missed_claims = [
            check.claim.text
            for check in iteration.claims
            if check.verdict == "contradicted"
            # An issue without a quote may concern any claim.
            and not any(
                issue.start is None
                or _spans_overlap((issue.start, issue.end), (check.claim.start, check.claim.end))
                for issue in critic_flags
            )
        ]
        if missed_claims:
            message = (
                f"The claim check found {_quote_first(missed_claims)} contradicted; the critic"
                f" found nothing against it and has a confidence of {confidence:.2f} in the answer."
            )
            reasons.append(ReviewReason(code="disagreement", message=message))
    return tuple(reasons)


_Span = tuple[int | None, int | None]


def _is_doubted_by_others(issue: Issue, iteration: Iteration) -> bool:
    """Return whether claims or citations leave the words of the critic's issue unconfirmed as well.

    If the issue quotes no words of the answer, any unconfirmed words may be meant.
    """
    unconfirmed: list[_Span] = [
        (check.claim.start, check.claim.end)
        for check in iteration.claims
        if check.verdict != "supported" or check.contradictions
    ]
    unconfirmed += [
        (other.start, other.end)
        for other in iteration.issues
        if other.source in ("citations", "claims") and other.type in GROUNDLESS and other.major
    ]
    if issue.start is None:
        return bool(unconfirmed)
    return any(_spans_overlap((issue.start, issue.end), span) for span in unconfirmed)


def _spans_overlap(first: _Span, second: _Span) -> bool:
    if None in (*first, *second):
        return False
    return (first[0] or 0) < (second[1] or 0) and (second[0] or 0) < (first[1] or 0)


CONTESTED_SHOWN = 3
"""The number of passages that a reason quotes; the page shows all."""


def _quote_first(texts: Iterable[str]) -> str:
    """Return the first distinct texts in quotation marks, and how many more there are."""
    distinct = list(dict.fromkeys(texts))
    shown = ", ".join(f"“{shorten(text, 80)}”" for text in distinct[:CONTESTED_SHOWN])
    omitted_count = len(distinct) - CONTESTED_SHOWN
    return f"{shown} and {omitted_count} more" if omitted_count > 0 else shown


def _raw_score(scores: tuple[Score, ...], name: str, final: float | None) -> float | None:
    """Return the score before any rule, as a share of 1 (MASIS-CRITIC-P5)."""
    raw = next((score.raw for score in scores if score.name == name), None)
    if raw is None:
        return final
    return min(max(raw / 100 if raw > 1 else raw, 0.0), 1.0)


def _check_references(judged: Iteration) -> _Check:
    audit = judged.citation_audit
    invalid, cited = (*audit.invalid_citations, *audit.carried_references), audit.citations
    if not invalid:
        return _Check(
            "references", f"{count_noun(len(cited), 'reference')}, all to evidence of this case"
        )
    verb = "cites" if len(invalid) == 1 else "cite"
    detail = f"{len(invalid)} of {count_noun(len(cited), 'reference')} fabricated"
    message = f"{count_noun(len(invalid), 'reference')} {verb} no evidence."
    return _failed_check("references", detail, "invalid_reference", message)


def _check_hallucination(judged: Iteration) -> _Check:
    if not judged.critique.hallucination_detected:
        return _Check("hallucination", "no hallucination reported")
    return _failed_check(
        "hallucination",
        "a hallucination was reported",
        "hallucination",
        "A hallucination was detected.",
    )


def _check_claim_verdicts(judged: Iteration) -> _Check:
    supported = sum(check.verdict == "supported" for check in judged.claims)
    detail = f"{supported} of {count_noun(len(judged.claims), 'claim')} supported"
    return _Check("claims", detail, claim_reasons(judged.claims))


def _check_serious_issues(judged: Iteration) -> _Check:
    """Check that no issue of severity high or critical is open.

    The check passes if the reasons of citations and claims explain all of them. Issues about the
    same words count once, as on the pages.
    """
    serious = [issue for issue in judged.issues if issue.major]
    if not serious:
        return _Check("serious_issues", "no open issue of severity high or critical")
    detail = f"{count_noun(len(serious), 'open issue')} of severity high or critical"
    has_flagged_words = _has_flagged_words(judged)
    explained = sum(
        issue.source in ("citations", "instructions")
        or (issue.source == "claims" and has_flagged_words)
        for issue in serious
    )
    if explained == len(serious) and has_flagged_words:
        return _Check("serious_issues", detail)
    count = _count_serious(judged)
    message = f"{count_noun(count, 'serious issue')} {'is' if count == 1 else 'are'} open."
    return _failed_check("serious_issues", detail, "serious_issue", message)


def _count_serious(iteration: Iteration) -> int:
    """Count the serious issues as pages number them: issues about the same words are one."""
    groups = about_same_words(iteration.issues)
    return sum(any(issue.major for issue in group) for group in groups)


def _has_flagged_words(judged: Iteration) -> bool:
    """Return whether citations or claims flag the answer.

    A reported hallucination is then the same fault. A fabricated reference still counts after its
    marker was removed, because it is reported as a hallucination too.
    """
    audit, flagged_verdicts = judged.citation_audit, {verdict for verdict, _, _ in FLAGGED_VERDICTS}
    fabricated = audit.invalid_citations or audit.carried_references
    return bool(fabricated) or any(check.verdict in flagged_verdicts for check in judged.claims)


def _issues_with_code(iteration: Iteration, code: ReviewCode) -> list[Issue]:
    """Return the issues that give this reason for review: by their rule, else by type safety."""
    return [
        issue
        for issue in iteration.issues
        if code
        == (
            (rule.review_code if (rule := RULES.get(issue.rule)) else None)
            or ("safety" if issue.type == "safety" else None)
        )
    ]


def _check_safety(judged: Iteration) -> _Check:
    count = len(_issues_with_code(judged, "safety"))
    if not count:
        return _Check("safety", "no issue of type safety")
    message = f"{count_noun(count, 'safety issue')} {'is' if count == 1 else 'are'} open."
    return _failed_check("safety", message.rstrip("."), "safety", message)


def _check_instructions(judged: Iteration, original: Iteration) -> _Check:
    """Check that evidence, judged answer and original answer have no instructions to a reader.

    A revision without the instruction doesn't help, because the original answer, which may be in
    use, was written under its influence.
    """
    instruction_issues = _issues_with_code(judged, "instruction")
    in_answer = sum(issue.start is not None for issue in instruction_issues)
    chunk_count = len({name for issue in instruction_issues for name in issue.evidence_ids})
    is_in_original = any(
        issue.start is not None for issue in _issues_with_code(original, "instruction")
    )
    locations = [
        *(["the answer"] if in_answer else ["the original answer"] if is_in_original else []),
        *([count_noun(chunk_count, "chunk") + " of evidence"] if chunk_count else []),
    ]
    if not locations:
        return _Check("instructions", "no instructions in answer or evidence")
    location_text = " and ".join(locations)
    message = f"There are instructions to a reader, a model or a tool in {location_text}."
    return _failed_check("instructions", f"instructions in {location_text}", "instruction", message)


def _check_screening(case: Case, settings: Settings) -> _Check:
    """Check that the screening behind the evidence found enough of it.

    This applies however faithful the answer is. An answer that was drafted from a screening isn't
    certified offline either, because the draft copies sentences that rules selected as findings,
    and copies always pass the offline verifier.
    """
    outcome = case.evidence_outcome
    if outcome is None:
        return _Check("screening", "the evidence isn't from a screening")
    if outcome == "sufficient" and settings.verifier == OFFLINE and not (case.answer or "").strip():
        message = (
            "The answer was drafted from a screening and only checked offline. Check it against the"
            " studies."
        )
        detail = "drafted from sufficient evidence, and checked by no model"
        return _failed_check("screening", detail, "screening_draft", message)
    if outcome == "sufficient":
        return _Check("screening", "the screening found the evidence sufficient")
    if outcome == "conflicting":
        message = (
            "The kept studies conflict. A person must judge whether the answer gives each its due"
            " weight."
        )
        return _failed_check(
            "screening",
            "the screened evidence is sufficient and conflicts",
            "conflicting_evidence",
            message,
        )
    message = (
        f"The screening that the evidence comes from ended without sufficient evidence ({outcome})."
    )
    return _failed_check(
        "screening", "the screened evidence is not sufficient", "insufficient_evidence", message
    )


def _check_original(original: Iteration, chosen: int, settings: Settings) -> _Check:
    """Check that the original answer was chosen, unless ``review_revised`` is off.

    Nobody has read a revision. Reviser and critic may share their blind spots, and the original
    answer is the one in use.
    """
    if not chosen:
        return _Check("original", "the original answer was chosen")
    if not settings.review_revised:
        return _Check("original", "a revision was chosen, which the settings accept")
    major = count_noun(_count_serious(original), "serious issue")
    message = f"The original answer has {major}, and nobody has read the suggested revision."
    return _failed_check("original", "a revision was chosen", "revised", message)


def _check_threshold(
    name: CheckName, value: float | None, threshold: float, code: ReviewCode
) -> _Check:
    """Check that a score reaches its threshold; the check ``scored`` handles a missing one."""
    if value is None:
        return _Check(name, "unscored")
    detail = f"{value:.2f}, must be at least {threshold:.2f}"
    if value >= threshold:
        return _Check(name, detail)
    message = f"{name.capitalize()} {value:.2f} is under the threshold of {threshold:.2f}."
    return _failed_check(name, detail, code, message)


def _check_disagreement(judged: Iteration, settings: Settings) -> _Check:
    """Check that the judges agree.

    The critic and the verifier must agree about the words, the scores must be close to each other,
    and so must the samples of one judge.
    """
    score_distance = disagreement(judged)
    contested = contested_words(judged, settings)
    reasons = [*contested, *_judge_spread_reasons(judged, settings)]
    scored = judged.critique.confidence is not None
    if scored and score_distance > settings.review_disagreement:
        rated = [f"{name} rates it {rating:.2f}" for name, rating in _rate_answer(judged).items()]
        message = (
            f"The checks disagree about the answer as a whole: {', '.join(rated)}. More than"
            f" {settings.review_disagreement:.2f} apart, at least one of them may be wrong."
        )
        reasons.append(ReviewReason(code="disagreement", message=message))
    words_detail = "critic and claim check differ about words of the answer; " if contested else ""
    detail = (
        f"{words_detail}scores {score_distance:.2f} apart, must be at most"
        f" {settings.review_disagreement:.2f}"
    )
    return _Check("disagreement", detail, tuple(reasons))


def _judge_spread_reasons(judged: Iteration, settings: Settings) -> Iterator[ReviewReason]:
    scores = (*judged.critique.scores, *(judged.evaluation.scores if judged.evaluation else ()))
    wide_scores = [
        score
        for score in scores
        if score.spread is not None and score.spread > settings.max_judge_spread
    ]
    if wide_scores:
        spreads = ", ".join(
            f"{score.name.replace('_', ' ')} by {score.spread:.2f}" for score in wide_scores
        )
        message = (
            f"Scores of the judge's samples differ by more than {settings.max_judge_spread:.2f}:"
            f" {spreads}."
        )
        yield ReviewReason(code="judges_disagree", message=message)
    votes = judged.critique.hallucination_votes
    if votes is not None and 0 < votes[0] < votes[1]:
        message = f"{votes[0]} of {votes[1]} samples of the critic found a hallucination."
        yield ReviewReason(code="judges_disagree", message=message)


def _check_scored(judged: Iteration) -> _Check:
    """Check that every requested step is scored; a step that failed can't certify anything."""
    critique, evaluation, report = judged.critique, judged.evaluation, judged.claim_report
    if critique.unscored == NOT_RUN:
        # Not a waivable reason, because nothing has judged the answer as a whole.
        return _failed_check(
            "scored", "critic not run", "critic_not_run", "The critic was not run (depth quick)."
        )
    unscored = [
        *(
            ["the critique"]
            if critique.unscored or None in (judged.quality_score, critique.confidence)
            else []
        ),
        *(["the evaluation"] if evaluation is not None and evaluation.unscored else []),
        *(["the claims"] if report.unscored else []),
        *(["the missing points"] if report.completeness_unscored else []),
    ]
    if unscored_claims := sum(check.verdict == "unscored" for check in judged.claims):
        unscored.append(count_noun(unscored_claims, "claim"))
    if not unscored:
        return _Check("scored", "all requested steps are scored")
    step_names = ", ".join(unscored)
    return _failed_check(
        "scored", f"unscored: {step_names}", "unscored", f"Unscored: {step_names}."
    )


def _check_checkable(judged: Iteration, evidence: Sequence[Evidence]) -> _Check:
    chunks = sum(bool(chunk.text.strip()) for chunk in evidence)
    detail = (
        f"{count_noun(len(judged.claims), 'claim')} against {count_noun(chunks, 'chunk')} with text"
    )
    if not chunks:
        return _failed_check(
            "checkable", detail, "nothing_checked", "No evidence has text to check against."
        )
    if not judged.claims and judged.claim_report.unscored is None:
        return _failed_check(
            "checkable",
            detail,
            "nothing_checked",
            "The answer makes no claim that could be checked.",
        )
    if unchecked_claims := [check for check in judged.claims if check.abstained == "language"]:
        message = (
            f"{count_noun(len(unchecked_claims), 'claim')} could not be checked because of the"
            f" language. {unchecked_claims[0].issue or ''}"
        )
        return _failed_check("checkable", detail, "language", message.strip())
    return _Check("checkable", detail)


def _check_limits(judged: Iteration) -> _Check:
    """Check that no part of the answer or evidence was left unchecked."""
    unchecked_parts = judged.claim_report.unchecked
    if not unchecked_parts:
        return _Check("limits", "answer and evidence are within the limits")
    message = " ".join(unchecked_parts)
    return _failed_check(
        "limits", message, "not_all_checked", f"Not everything was checked: {message}"
    )


def _check_examined(unexamined: str, settings: Settings) -> _Check:
    """Check that every judging model has passed the exam, on answers with known faults."""
    if not unexamined:
        return _Check("examined", "every model that judged has passed the exam")
    if settings.accept_without_exam:
        return _Check(
            "examined",
            f"not required by the settings, but {unexamined} has not passed the exam",
        )
    detail = f"{unexamined} has not passed the exam"
    message = f"{detail}, so answers that it judges are never accepted without a person."
    return _failed_check("examined", detail, "model_not_examined", message)


def _check_cites(judged: Iteration, evidence: Sequence[Evidence], settings: Settings) -> _Check:
    if judged.citation_audit.citations:
        return _Check("cites", "the answer cites its evidence")
    if (
        not settings.review_uncited_answers
        or not any(chunk.text.strip() for chunk in evidence)
        or not judged.claims
    ):
        return _Check("cites", "the answer cites nothing")
    return _failed_check(
        "cites", "the answer cites nothing", "nothing_checked", "The answer cites nothing."
    )


def _check_ending(termination: TerminationReason) -> _Check:
    reasons: dict[str, tuple[ReviewCode, str]] = {
        "error": ("error", "The audit ended with an error."),
        "max_iterations": (
            "limit",
            "Serious issues were left when the limit of iterations was reached.",
        ),
        "cancelled": ("cancelled", "The audit was cancelled before it ended."),
    }
    detail = f"ended by {termination}"
    return (
        _failed_check("ending", detail, *reasons[termination])
        if termination in reasons
        else _Check("ending", detail)
    )
