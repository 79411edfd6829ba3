"""Decide whether a run needs a person: one rule, the same for the loop, the desk, ``audited``, MCP
and pytest.

An answer is auto-accepted only where every check passes; each check that fails gives a reason with
a code and a tier. docs/trust.md states the rule for people. Nothing here reads a store or a model.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from math import prod
from typing import NamedTuple

from masis.audit.control import routing
from masis.audit.critique import ALWAYS_HALLUCINATION, NOT_RUN, SOURCE_CONFLICT
from masis.audit.issues import GROUNDLESS, about_same_words
from masis.schema.audit import ClaimCheck, Issue, Score
from masis.schema.case import Case, ClaimVerdict, Evidence, Severity
from masis.schema.run import (
    AcceptanceCheck,
    AcceptanceRecord,
    CheckName,
    Iteration,
    ReviewCode,
    ReviewReason,
    Run,
    TerminationReason,
)
from masis.schema.wording import count_noun, describe_absent_figures, describe_marked_words, shorten
from masis.settings import OFFLINE, Settings

RULE_VERSION = "9"
"""Raised with every change of what is checked; stored with each run. docs/trust.md says what is
checked.
"""

ACCUSATIONS: tuple[tuple[ClaimVerdict, ReviewCode, str], ...] = (
    ("contradicted", "contradicted_claim", "The evidence contradicts {}."),
    ("unsupported", "unsupported_claim", "The evidence does not support {}."),
    ("partial", "partial_claim", "The evidence supports {} only in part."),
)


class Acceptability(NamedTuple):
    """What the rule makes of a run: the checks with their results, and every reason for review."""

    acceptance: AcceptanceRecord
    reasons: tuple[ReviewReason, ...]


class _Check(NamedTuple):
    """One check: its name, what it found in words, and the reasons for review where it fails."""

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
    """Apply the rule to the original answer, which is what a person is shown first and what may be
    in use.

    Where a revision was chosen and the settings let one pass unread (``review_revised`` off), it is
    applied to that. ``chosen`` is the index of the answer that a stored run chose; the best
    iteration where it is not given. ``unexamined`` names the models that judged without having
    passed the exam; empty where they have. There are no reasons exactly where every check passed.
    """
    chosen = routing.best_index(iterations) if chosen is None else chosen
    if termination == "no_answer":
        checks = [_check_answered(case)]
    elif chosen is None:
        nothing = _failed_check(
            "checkable",
            "no iteration was finished",
            "nothing_checked",
            "No iteration was finished.",
        )
        checks = [_check_answered(case), nothing, _ending(termination)]
    else:
        judged = iterations[0 if settings.review_revised else chosen]
        checks = [
            _check_answered(case),
            _references(judged),
            _hallucination(judged),
            _claims(judged),
            _serious_issues(judged),
            _safety(judged),
            _check_instructions(judged, iterations[0]),
            _check_screening(case, settings),
            _original(iterations[0], chosen, settings),
            _at_least(
                "confidence",
                judged.critique.confidence,
                settings.review_threshold,
                "low_confidence",
            ),
            _at_least("quality", judged.quality_score, settings.review_quality, "low_quality"),
            _disagreement(judged, settings),
            _check_scored(judged),
            _checkable(judged, case.evidence),
            _limits(judged),
            _check_examined(unexamined, settings),
            _check_cites(judged, case.evidence, settings),
            _ending(termination),
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
    """A system that refused or failed has to be looked at, also where an answer was drafted in its
    place.
    """
    why = case.unanswered
    if why is None:
        return _Check(
            "answered",
            "the system answered" if (case.answer or "").strip() else "no answer came with it",
        )
    code: ReviewCode = "answer_refused" if why.code == "refused" else "answer_failed"
    return _failed_check("answered", f"no answer: {why.code}", code, unanswered_reason(case))


def unanswered_reason(case: Case) -> str:
    """Return why the system gave no answer, in a sentence with what it said; "" where
    it gave one.
    """
    why = case.unanswered
    if why is None:
        return ""
    sentence = (
        "The system refused to answer" if why.code == "refused" else "The call of the system failed"
    )
    said = " ".join(why.message.split())
    sentence = f"{sentence}: {said}" if said else sentence
    return sentence if sentence.endswith((".", "!", "?", "…")) else f"{sentence}."


def accusations(iteration: Iteration) -> tuple[ReviewReason, ...]:
    """Return what is wrong or unsafe in one audited answer: the reasons of tier ``must_look`` that
    it gives itself.
    """
    checks = (_references, _hallucination, _claims, _serious_issues, _safety)
    found = [*(check(iteration) for check in checks), _check_instructions(iteration, iteration)]
    return tuple(
        reason for check in found for reason in check.reasons if reason.tier == "must_look"
    )


def claim_reasons(checks: Sequence[ClaimCheck]) -> tuple[ReviewReason, ...]:
    """Return why these claims do not pass: empty where the evidence supports each and nothing
    contradicts it.

    What could not be decided is no accusation, and certifies nothing either; nor does a figure that
    the evidence lacks and that may be calculated, or a word that a tagger marks, whatever a second
    verifier says of its claim. Claims without a verdict are a matter of the check ``scored``.
    """
    verdicts = [check.verdict for check in checks]
    reasons = [
        ReviewReason(code=code, message=template.format(count_noun(count, "claim")))
        for verdict, code, template in ACCUSATIONS
        if (count := verdicts.count(verdict))
    ]
    beside = [check for check in checks if check.verdict == "supported" and check.contradictions]
    if count := sum(not check.sources_disagree for check in beside):
        message = (
            f"The evidence seems to contradict {count_noun(count, 'claim')} that it supports"
            " otherwise."
        )
        reasons.append(ReviewReason(code="contradicted_claim", message=message))
    if count := sum(check.sources_disagree for check in beside):
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
    """Return whether a run that needs no review goes to a person all the same.

    Drawn from the recorded seed and the case's id: the same case is drawn or not whoever audits it,
    in any order.
    """
    return (
        random.Random(f"{settings.spot_check_seed}:{case_id}").random() < settings.spot_check_share
    )


WAIVABLE: frozenset[ReviewCode] = frozenset(
    {
        "unconfirmed_claim",
        "low_confidence",
        "low_quality",
        "disagreement",
        "judges_disagree",
        "nothing_checked",
        "language",
    }
)
"""Reasons of tier ``not_certified`` that a guarantee may waive: how sure a finished audit is of the
original answer.

Figures that the evidence lacks, words that a tagger marks, revisions, audits cut short, steps
without a score, answers over a limit or that no critic read, conflicting studies and what was
drafted from a screening stay with people."""


def coverable(run: Run) -> bool:
    """Return whether a guarantee may accept a run: the original answer was chosen, and only
    waivable reasons are left.

    An answer that was drafted here, from a screening or from evidence, is always read by a person.
    """
    return (
        run.best == 0
        and run.draft is None
        and all(reason.code in WAIVABLE for reason in run.review_reasons)
    )


def waive(assessed: Acceptability, *, guarantee: int) -> Acceptability:
    """Return an assessment whose reasons a guarantee waives. Raises ValueError where one can't be
    waived.
    """
    codes = tuple(dict.fromkeys(reason.code for reason in assessed.reasons))
    if not WAIVABLE.issuperset(codes):
        raise ValueError(f"no guarantee waives {', '.join(sorted(set(codes) - WAIVABLE))}")
    return Acceptability(
        assessed.acceptance.model_copy(update={"guarantee": guarantee, "waived": codes}), ()
    )


FAULT_OF_CLAIM: dict[ClaimVerdict, float] = {
    "contradicted": 0.8,
    "unsupported": 0.8,
    "partial": 0.5,
    "unverifiable": 0.2,
    "unscored": 0.2,
    "supported": 0.02,
}
"""How likely a claim of this verdict is faulty: accusations should be right at least four times in
five; one claim in five of the answers written for testing is faulty. Chosen to order a queue, not
calibrated."""

FAULT_OF_ISSUE: dict[Severity, float] = {"critical": 0.8, "high": 0.5, "medium": 0.1, "low": 0.02}
FAULT_OF_REFERENCE, FAULT_OF_HALLUCINATION, FAULT_OF_DOUBT = 0.9, 0.6, 0.3


def fault_probability(iteration: Iteration) -> float:
    """Estimate how likely an audited answer is faulty, 0 to 1, for the order of the queue.

    Each sign (a claim by its verdict, a fabricated reference, an issue of the critic) counts as
    independent of the others: the answer is sound only if none of them is a fault. A low confidence
    adds a little.
    """
    confidence = iteration.critique.confidence
    signs = [FAULT_OF_DOUBT * (1.0 - (0.5 if confidence is None else confidence))]
    audit = iteration.citation_audit
    signs += [FAULT_OF_REFERENCE] * len((*audit.invalid_citations, *audit.carried_references))
    signs += [_fault_of(check) for check in iteration.claims]
    signs += [
        FAULT_OF_ISSUE[issue.severity] for issue in iteration.issues if issue.source == "critic"
    ]
    if iteration.critique.hallucination_detected and not _has_flagged_words(iteration):
        signs.append(FAULT_OF_HALLUCINATION)
    return 1.0 - prod(1.0 - sign for sign in signs)


def _fault_of(check: ClaimCheck) -> float:
    if check.verdict == "supported" and check.contradictions:
        return FAULT_OF_CLAIM["partial"]
    if check.verdict == "unverifiable" and check.support is not None:
        return 2 * FAULT_OF_CLAIM["unverifiable"] * (1.0 - check.support)
    return FAULT_OF_CLAIM[check.verdict]


def disagreement(iteration: Iteration) -> float:
    """Return how far citation engine, critic and evaluator are apart, 0 to 1.

    Each says how good the answer is: the penalty factor of the citations, the critic's confidence
    and the evaluator's faithfulness. The last two are taken before the citations' rules changed
    them; after, the three could hardly disagree. With fewer than two opinions nothing confirms
    anything: 1.
    """
    opinions = [iteration.citation_audit.penalty_factor]
    confidence = _raw(iteration.critique.scores, "confidence", iteration.critique.confidence)
    if confidence is not None:
        opinions.append(confidence)
    if iteration.evaluation is not None:
        faithfulness = _raw(
            iteration.evaluation.scores, "faithfulness", iteration.evaluation.faithfulness
        )
        if faithfulness is not None:
            opinions.append(faithfulness)
    return max(opinions) - min(opinions) if len(opinions) > 1 else 1.0


def contested_words(iteration: Iteration, settings: Settings) -> tuple[ReviewReason, ...]:
    """Return where critic and verifier disagree about the same words.

    The critic says of words, or of the answer as a whole, that the evidence doesn't support them,
    and the verifier found nothing against them. Of severity low that is about wording ("a little
    too strong": three of 23 sound demo answers have one), unless it says outright that the words
    are denied or invented. Or the verifier found words contradicted, and the critic is content with
    them and with the answer.

    Rules that criticise by the verifier's own verdicts (offline) can't disagree with it.
    """
    doubted = [
        issue
        for issue in iteration.issues
        if issue.source == "critic"
        and issue.type in GROUNDLESS
        and (issue.severity != "low" or issue.type in ALWAYS_HALLUCINATION)
        and issue.rule != SOURCE_CONFLICT
        and not _doubted_by_others(issue, iteration)
    ]
    reasons = []
    if doubted:
        words = _quote_first(issue.quote or issue.description for issue in doubted)
        message = (
            f"The critic says that the evidence doesn't support {words}; the claim check found"
            " nothing against it."
        )
        reasons.append(ReviewReason(code="disagreement", message=message))
    confidence = _raw(iteration.critique.scores, "confidence", iteration.critique.confidence)
    content = confidence is not None and confidence >= settings.review_threshold
    if content and iteration.critique.judged_by.model != OFFLINE:
        accused = [
            issue
            for issue in iteration.issues
            if issue.source == "critic" and issue.type in GROUNDLESS
        ]
        missed = [
            check.claim.text
            for check in iteration.claims
            if check.verdict == "contradicted"
            and not any(_may_mean(issue, check) for issue in accused)
        ]
        if missed:
            message = (
                f"The claim check found {_quote_first(missed)} contradicted; the critic found nothing"
                f" against it and has a confidence of {confidence:.2f} in the answer."
            )
            reasons.append(ReviewReason(code="disagreement", message=message))
    return tuple(reasons)


_Span = tuple[int | None, int | None]


def _may_mean(issue: Issue, check: ClaimCheck) -> bool:
    """Return whether the critic's issue can be about the words of the claim: an issue without words
    can be.
    """
    return issue.start is None or _stretches_overlap(
        (issue.start, issue.end), (check.claim.start, check.claim.end)
    )


def _doubted_by_others(issue: Issue, iteration: Iteration) -> bool:
    """Return whether claims or citations leave the words of the critic's issue unconfirmed as well.

    Where the issue quotes no words of the answer, any words that they leave unconfirmed may be
    meant.
    """
    others: list[_Span] = [
        (check.claim.start, check.claim.end)
        for check in iteration.claims
        if check.verdict != "supported" or check.contradictions
    ]
    others += [
        (other.start, other.end)
        for other in iteration.issues
        if other.source in ("citations", "claims") and other.type in GROUNDLESS and other.major
    ]
    if issue.start is None:
        return bool(others)
    return any(_stretches_overlap((issue.start, issue.end), span) for span in others)


def _stretches_overlap(one: _Span, other: _Span) -> bool:
    if None in (*one, *other):
        return False
    return (one[0] or 0) < (other[1] or 0) and (other[0] or 0) < (one[1] or 0)


CONTESTED_SHOWN = 3
"""Passages that a reason quotes; the page shows them all."""


def _quote_first(texts: Iterable[str]) -> str:
    """Return the first of the texts in quotation marks, each once, with how many more there are."""
    distinct = list(dict.fromkeys(texts))
    shown = ", ".join(f"“{shorten(text, 80)}”" for text in distinct[:CONTESTED_SHOWN])
    more = len(distinct) - CONTESTED_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def _raw(scores: tuple[Score, ...], name: str, final: float | None) -> float | None:
    """Return the score before any rule, as a share of 1 (MASIS-CRITIC-P5)."""
    raw = next((score.raw for score in scores if score.name == name), None)
    if raw is None:
        return final
    return min(max(raw / 100 if raw > 1 else raw, 0.0), 1.0)


def _references(judged: Iteration) -> _Check:
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


def _hallucination(judged: Iteration) -> _Check:
    if not judged.critique.hallucination_detected:
        return _Check("hallucination", "no hallucination reported")
    return _failed_check(
        "hallucination",
        "a hallucination was reported",
        "hallucination",
        "A hallucination was detected.",
    )


def _claims(judged: Iteration) -> _Check:
    supported = sum(check.verdict == "supported" for check in judged.claims)
    detail = f"{supported} of {count_noun(len(judged.claims), 'claim')} supported"
    return _Check("claims", detail, claim_reasons(judged.claims))


def _serious_issues(judged: Iteration) -> _Check:
    """No open issue of severity high or critical, whoever raised it.

    Where the reasons of citations and claims explain them all, there is none here. Those about the
    same words count once, as the pages number them.
    """
    serious = [issue for issue in judged.issues if issue.major]
    if not serious:
        return _Check("serious_issues", "no open issue of severity high or critical")
    detail = f"{count_noun(len(serious), 'open issue')} of severity high or critical"
    accused = _has_flagged_words(judged)
    explained = sum(
        i.source in ("citations", "instructions") or (i.source == "claims" and accused)
        for i in serious
    )
    if explained == len(serious) and accused:
        return _Check("serious_issues", detail)
    count = len(about_same_words(serious))
    message = f"{count_noun(count, 'serious issue')} {'is' if count == 1 else 'are'} open."
    return _failed_check("serious_issues", detail, "serious_issue", message)


def _has_flagged_words(judged: Iteration) -> bool:
    """Return whether citations or claims accuse the answer: a hallucination that is reported is
    then that same fault.

    A fabricated reference counts also where its marker was taken off since: it is reported as a
    hallucination, too.
    """
    audit, accusing = judged.citation_audit, {verdict for verdict, _, _ in ACCUSATIONS}
    fabricated = audit.invalid_citations or audit.carried_references
    return bool(fabricated) or any(check.verdict in accusing for check in judged.claims)


def _safety(judged: Iteration) -> _Check:
    found = sum(
        issue.type == "safety" and issue.source != "instructions" for issue in judged.issues
    )
    if not found:
        return _Check("safety", "no issue of type safety")
    message = f"{count_noun(found, 'safety issue')} {'is' if found == 1 else 'are'} open."
    return _failed_check("safety", message.rstrip("."), "safety", message)


def _check_instructions(judged: Iteration, original: Iteration) -> _Check:
    """No text may instruct its reader, a model or a tool: neither the evidence nor the judged nor
    the original answer.

    A revision that dropped it does not undo that the original, which may be in use, was written
    under orders.
    """
    found = [issue for issue in judged.issues if issue.source == "instructions"]
    answers = sum(issue.start is not None for issue in found)
    chunks = len({name for issue in found for name in issue.evidence_ids})
    before = any(
        issue.source == "instructions" and issue.start is not None for issue in original.issues
    )
    places = [
        *(["the answer"] if answers else ["the original answer"] if before else []),
        *([count_noun(chunks, "chunk") + " of evidence"] if chunks else []),
    ]
    if not places:
        return _Check("instructions", "neither answer nor evidence instructs its reader")
    where = " and ".join(places)
    message = f"Text that instructs its reader, a model or a tool stands in {where}."
    return _failed_check("instructions", f"instructions in {where}", "instruction", message)


def _check_screening(case: Case, settings: Settings) -> _Check:
    """What a screening found too little of can't carry an answer, however well the answer keeps to
    it.

    Nor is an answer that was drafted from a screening certified offline: the draft copies sentences
    that rules took for the studies' findings, and copies always pass the offline verifier.
    """
    outcome = case.evidence_outcome
    if outcome is None:
        return _Check("screening", "the evidence comes from no screening")
    if outcome == "sufficient" and settings.verifier == OFFLINE and not (case.answer or "").strip():
        message = (
            "The answer was drafted from a screening and checked offline: a person reads it against"
            " the studies."
        )
        detail = "drafted from sufficient evidence, and checked by no model"
        return _failed_check("screening", detail, "screening_draft", message)
    if outcome == "sufficient":
        return _Check("screening", "the screening found the evidence sufficient")
    if outcome == "conflicting":
        message = (
            "The kept studies conflict: whether the answer gives each its weight is for a person to"
            " say."
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


def _original(original: Iteration, chosen: int, settings: Settings) -> _Check:
    """A chosen answer that a machine wrote is nobody's answer until a person has read it
    (``review_revised``).

    Reviser and critic may share their blind spots, and the original answer is the one in use.
    """
    if not chosen:
        return _Check("original", "the original answer was chosen")
    if not settings.review_revised:
        return _Check("original", "a revision was chosen, which the settings accept")
    major = count_noun(sum(issue.major for issue in original.issues), "serious issue")
    message = f"The original answer had {major}; the chosen one is a revision that nobody has read."
    return _failed_check("original", "a revision was chosen", "revised", message)


def _at_least(name: CheckName, value: float | None, least: float, code: ReviewCode) -> _Check:
    """A score must reach its threshold. One that is missing is a matter of ``_scored``."""
    if value is None:
        return _Check(name, "unscored")
    detail = f"{value:.2f}, at least {least:.2f} is asked"
    if value >= least:
        return _Check(name, detail)
    message = f"{name.capitalize()} {value:.2f} is under the threshold of {least:.2f}."
    return _failed_check(name, detail, code, message)


def _disagreement(judged: Iteration, settings: Settings) -> _Check:
    """Critic and verifier must agree about each word, all scores about the answer, and a judge with
    itself.
    """
    apart = disagreement(judged)
    contested = contested_words(judged, settings)
    reasons = [*contested, *_judges_apart(judged, settings)]
    scored = judged.critique.confidence is not None
    if scored and apart > settings.review_disagreement:
        message = (
            f"Citation engine, critic and evaluator are {apart:.2f} apart; at most"
            f" {settings.review_disagreement:.2f} passes without a person."
        )
        reasons.append(ReviewReason(code="disagreement", message=message))
    words = "critic and claim check differ about words of the answer; " if contested else ""
    detail = f"{words}scores {apart:.2f} apart, at most {settings.review_disagreement:.2f} is asked"
    return _Check("disagreement", detail, tuple(reasons))


def _judges_apart(judged: Iteration, settings: Settings) -> Iterator[ReviewReason]:
    scores = (*judged.critique.scores, *(judged.evaluation.scores if judged.evaluation else ()))
    apart = [
        score
        for score in scores
        if score.spread is not None and score.spread > settings.max_judge_spread
    ]
    if apart:
        spreads = ", ".join(
            f"{score.name.replace('_', ' ')} by {score.spread:.2f}" for score in apart
        )
        message = (
            f"Samples of the judge are further apart than {settings.max_judge_spread:.2f}:"
            f" {spreads}."
        )
        yield ReviewReason(code="judges_disagree", message=message)
    votes = judged.critique.hallucination_votes
    if votes is not None and 0 < votes[0] < votes[1]:
        message = f"{votes[0]} of {votes[1]} samples of the critic found a hallucination."
        yield ReviewReason(code="judges_disagree", message=message)


def _check_scored(judged: Iteration) -> _Check:
    """Everything that was asked for must be scored: a step that failed can't certify anything."""
    critique, evaluation, report = judged.critique, judged.evaluation, judged.claim_report
    if critique.unscored == NOT_RUN:
        # of no tier that a certified threshold may waive: nobody has read the answer as a whole
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
        *(["what is left out"] if report.completeness_unscored else []),
    ]
    if claims := sum(check.verdict == "unscored" for check in judged.claims):
        unscored.append(count_noun(claims, "claim"))
    if not unscored:
        return _Check("scored", "every step that was asked for is scored")
    names = ", ".join(unscored)
    return _failed_check("scored", f"unscored: {names}", "unscored", f"Unscored: {names}.")


def _checkable(judged: Iteration, evidence: Sequence[Evidence]) -> _Check:
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
    if foreign := [check for check in judged.claims if check.abstained == "language"]:
        message = (
            f"{count_noun(len(foreign), 'claim')} could not be checked for the language."
            f" {foreign[0].issue or ''}"
        )
        return _failed_check("checkable", detail, "language", message.strip())
    return _Check("checkable", detail)


def _limits(judged: Iteration) -> _Check:
    """Nothing is certified of which a part was not checked."""
    left_out = judged.claim_report.unchecked
    if not left_out:
        return _Check("limits", "answer and evidence lie within the limits")
    whole = " ".join(left_out)
    return _failed_check("limits", whole, "not_all_checked", f"Not everything was checked: {whole}")


def _check_examined(unexamined: str, settings: Settings) -> _Check:
    """No model lets an answer pass before it has shown on answers with known faults that it finds
    them.
    """
    if not unexamined:
        return _Check("examined", "every model that judged has passed the exam")
    if settings.accept_without_exam:
        return _Check(
            "examined",
            f"not asked for by the settings, although {unexamined} has not passed the exam",
        )
    detail = f"{unexamined} has not passed the exam"
    message = f"{detail}, so that nothing it judges is accepted without a person."
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


def _ending(termination: TerminationReason) -> _Check:
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
