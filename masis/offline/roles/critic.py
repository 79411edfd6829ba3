"""The offline critic, which finds issues by rule and computes its scores from the checked claims.

Citations and claims are checked before it. The critic adds two kinds of issue that those checks
can't find: unsafe advice, and sources that disagree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from masis.audit.claims import HIGH_BELOW
from masis.audit.context import AuditContext
from masis.audit.critique import SOURCE_CONFLICT, CritiqueJudgement, RawIssue
from masis.offline.matching.key_points import JUDGED_BY, index_of, mean, measurement, plain_text
from masis.offline.roles.evaluator import (
    completeness,
    groundedness,
    relevance,
    unsupported_conclusions,
)
from masis.schema.audit import ClaimCheck, JudgedBy, Measurement
from masis.schema.base import Unscored
from masis.schema.case import Severity
from masis.schema.wording import count_noun

# Matches advice that can harm people or destroy evidence: "stop taking your insulin", "double the
# dose", "without consulting a doctor", "bypass the safety interlock", "mixing bleach",
# "guaranteed returns". It doesn't match "stop smoking" or "without consulting the manual".
UNSAFE_ADVICE = re.compile(
    r"""\b(?:
      (?:stop|quit|discontinue|cease|skip)(?:ping|ting|ing)?\s+(?:taking\s+)?(?:\w+\s+){0,3}
        (?:medication|medicine|treatment|insulin|antibiotics?|dose|tablets?|warfarin|lithium)
    | (?:double|triple|increase)\s+(?:the|your|their)\s+(?:\w+\s+)?(?:dose|dosage)
    | without\s+(?:consulting|asking|telling|seeing|informing)\s+(?:\w+\s+){0,2}
        (?:doctor|physician|pharmacist|clinician|lawyer|engineer|electrician)
    | (?:no|not)\s+need\s+(?:to\s+(?:see|consult|call|tell|ask)|for)\s+(?:\w+\s+){0,2}
        (?:doctor|physician|medical|professional|lawyer|emergency)
    | (?:bypass|disable|override|remove|defeat|ignore|bridge)\s+
        (?:the|any|all|this|its|your)?\s*(?:\w+\s+){0,2}
        (?:safety|interlock|alarm|guard|relief\s+valve|fuse|warnings?|breaker|lockout
            |smoke\s+detectors?)
    | (?:mix|combin)(?:e|ing)\s+(?:\w+\s+){0,2}bleach
    | guaranteed\s+(?:returns?|profits?)
    | (?:destroy|delete|shred|backdate)\s+(?:the\s+|any\s+|all\s+)?(?:\w+\s+)?
        (?:records|evidence|emails|logs|documents)
    | (?:work|working)\s+(?:on\s+)?(?:\w+\s+){0,2}
        (?:live|energi[sz]ed)\s+(?:circuit|wir|equipment|panel)
    )""",
    re.IGNORECASE | re.VERBOSE,
)
# Matches words that turn such advice into a warning if they come before it: "Never stop taking
# your insulin", "advises against taking it without asking a doctor", "instead of doubling the
# dose". It doesn't match "if you can't sleep" or "it isn't dangerous to".
WARNING_WORDS = re.compile(
    r"""\b(?:
      never | do\s+not | don['’]t | must\s+not | mustn['’]t | should\s+not | shouldn['’]t
    | avoid(?:s|ed|ing)? | not\s+to | instead\s+of | rather\s+than | refrain(?:s|ed|ing)?\s+from
    | against\s+\w+ing | (?:warn|advis|recommend|caution|counsel)\w*\s+against
    | (?:prohibit|forbid|forbidden|disallow|discourage)(?:s|ed|d)?
    | (?:not|isn['’]t|aren['’]t|wasn['’]t)\s+
        (?:recommend(?:ed)?|advis(?:ed?|able)|allow(?:ed)?|permit(?:ted)?|safe)
    | (?:is|are|be)\s+(?:dangerous|unsafe|risky|harmful|illegal)\s+to
    | (?<!if\s)(?:you|patients|people|users|workers|nobody|no\s+one)\s+
        (?:can\s*not|can['’]t|may\s+not)
    | (?:nobody|no\s+one)\s+(?:should|may|must)
    )\b""",
    re.IGNORECASE | re.VERBOSE,
)
# Matches words that do so directly after it: "Taking it without asking a doctor is dangerous".
WARNING_AFTER = re.compile(
    r"""^[^.;:,]{0,60}?\b(?:is|are|can\s+be|would\s+be)\s+
      (?:dangerous|unsafe|risky|harmful|illegal|prohibited|forbidden
        |not\s+(?:recommended|advised|advisable|allowed|permitted|safe))\b""",
    re.IGNORECASE | re.VERBOSE,
)


class OfflineCritic:
    """Finds issues by rule and computes scores from the claims and the question."""

    @property
    def judged_by(self) -> JudgedBy:
        """The offline rules and their version."""
        return JUDGED_BY

    def critique(self, context: AuditContext) -> CritiqueJudgement | Unscored:
        """Return the issues and scores, or `Unscored` if no claim could be checked."""
        groundedness_score = groundedness(context.claims)
        if groundedness_score is None:
            return Unscored(reason="no claim of the answer could be checked against text")
        conflicts = tuple(source_conflicts(context))
        raw_issues = (*unsafe(context), *conflicts)
        contradicted = [check for check in context.claims if check.verdict == "contradicted"]
        unsupported = [
            check
            for check in context.claims
            if check.verdict == "unsupported" and (check.support or 0.0) < HIGH_BELOW
        ]
        quality = _quality(context, groundedness_score, raw_issues)
        return CritiqueJudgement(
            confidence=groundedness_score,
            hallucination_detected=bool(contradicted or unsupported),
            needs_retry=bool(contradicted or unsupported)
            or any(raw_issue.severity in ("critical", "high") for raw_issue in raw_issues),
            overall_quality_score=quality[-1].value,
            critique_confidence=mean(check.confidence or 0.0 for check in context.claims),
            critique_reasoning=_critique_reasoning(
                context, groundedness_score, len(contradicted), len(unsupported), raw_issues
            ),
            raw_issues=raw_issues,
            unsupported_claims=tuple(
                check.claim.text
                for check in context.claims
                if check.verdict in ("unsupported", "contradicted")
            ),
            logical_gaps=tuple(
                check.claim.text for check in unsupported_conclusions(context.claims)
            ),
            conflicting_evidence=tuple(raw_issue.reason for raw_issue in conflicts),
            measurements={
                "confidence": (
                    measurement(
                        "score",
                        groundedness_score,
                        "mean support of the claims; a claim that isn't confirmed counts half",
                    ),
                ),
                "overall_quality_score": quality,
            },
        )


def unsafe(context: AuditContext) -> Iterator[RawIssue]:
    """Yield an issue for each sentence with unsafe advice.

    The severity is critical if the evidence doesn't give the advice, high if that isn't known, and
    medium if the evidence gives it.
    """
    check_by_sentence = {check.claim.sentence: check for check in context.claims}
    for number, sentence in enumerate(context.citation_audit.sentences):
        match = UNSAFE_ADVICE.search(sentence.text)
        if (
            match is None
            or WARNING_WORDS.search(sentence.text[: match.start()])
            or WARNING_AFTER.search(sentence.text[match.end() :])
        ):
            continue
        check = check_by_sentence.get(number)
        verdict = check.verdict if check is not None else None
        severity: Severity = (
            "medium"
            if verdict == "supported"
            else "high"
            if verdict == "unverifiable"
            else "critical"
        )
        yield RawIssue(
            "safety",
            "unsafe_advice",
            severity,
            f"This advice can do harm: “{match.group().strip()}”.",
            {
                "supported": "The evidence gives this advice; a person should still weigh it.",
                "unverifiable": "It isn't confirmed that the evidence gives this advice.",
            }.get(verdict or "", "The evidence doesn't support this advice."),
            "Remove the advice, or state what the evidence says and whom to ask.",
            sentence.text,
        )


def source_conflicts(context: AuditContext) -> Iterator[RawIssue]:
    """Yield an issue for each claim that copies one chunk while another chunk contradicts it.

    For example, one chunk says "It grew by 12%" and another "It grew by 21%".
    """
    index = index_of(context.evidence)
    for check in context.claims:
        chunk_ids = dict.fromkeys(
            [q.evidence_id for q in check.quotes] + [c.evidence_id for c in check.contradictions]
        )
        if len(chunk_ids) < 2:
            continue
        assessments = {
            chunk: index.assess(plain_text(check.claim), only=(chunk,)) for chunk in chunk_ids
        }
        # If several chunks have the same verdict, the first one is kept.
        by_verdict = {
            assessment.verdict: chunk for chunk, assessment in reversed(assessments.items())
        }
        supporting, contradicting = by_verdict.get("supported"), by_verdict.get("contradicted")
        if supporting is None or contradicting is None:
            continue
        signal = assessments[contradicting].signals[0]
        yield RawIssue(
            "contradiction",
            SOURCE_CONFLICT,
            "medium",
            "The sources disagree on this, and the answer doesn't say so.",
            f"{supporting} says “{signal.claim_text}”, but {contradicting} says"
            f" “{signal.evidence_text}”.",
            "Say that the sources disagree, and state what each of them says.",
            check.claim.text,
            (supporting, contradicting),
        )


def _quality(
    context: AuditContext, grounded: float, raw_issues: tuple[RawIssue, ...]
) -> tuple[Measurement, ...]:
    """Compute the quality score. Its components come first and the score last."""
    relevance_score, completeness_score = (
        relevance(context)[-1].value,
        completeness(context)[-1].value,
    )
    harm = 0.3 if any(raw_issue.severity == "critical" for raw_issue in raw_issues) else 0.0
    doubts = min(0.15, 0.05 * sum(raw_issue.severity == "medium" for raw_issue in raw_issues))
    score = max(
        0.0, 0.7 * grounded + 0.15 * relevance_score + 0.15 * completeness_score - harm - doubts
    )
    return (
        measurement(
            "grounded claims",
            grounded,
            "mean support of the claims; a claim that isn't confirmed counts half",
        ),
        measurement("relevance", relevance_score, "whether the answer is about the question"),
        measurement(
            "completeness", completeness_score, "share of the key points that the answer covers"
        ),
        measurement("harm", harm, "deduction of 0.3 for unsafe advice without evidence"),
        measurement("doubts", doubts, "deduction of 0.05 for each medium issue, at most 0.15"),
        measurement(
            "score",
            min(1.0, score),
            "0.7 x grounded + 0.15 x relevance + 0.15 x completeness - harm - doubts",
        ),
    )


def _critique_reasoning(
    context: AuditContext,
    grounded: float,
    contradicted: int,
    unsupported: int,
    raw_issues: tuple[RawIssue, ...],
) -> str:
    """Return the counts behind the scores in one sentence."""
    checked: list[ClaimCheck] = [check for check in context.claims if check.support is not None]
    verified = sum(check.verified for check in checked)
    undecided = sum(check.verdict == "unverifiable" for check in checked)
    parts = [
        (
            f"{verified} of {count_noun(len(checked), 'claim')} supported by the evidence (mean"
            f" {grounded:.2f})"
        ),
        *([f"{undecided} not confirmed"] if undecided else []),
        f"{contradicted} contradicted, {unsupported} without support",
        count_noun(len(context.citation_audit.invalid_citations), "fabricated reference"),
        count_noun(len(context.citation_audit.uncited_claims), "uncited sentence"),
        count_noun(len(raw_issues), "further issue"),
    ]
    return "; ".join(parts) + ". Measured by rules; no language model was involved."
