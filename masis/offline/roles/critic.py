"""The critic without a model: issues found by rule, and scores measured on claims and question.

Citation and claim checks come first; the critic adds what neither sees: unsafe advice, and sources
that disagree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from masis.audit.claims import HIGH_BELOW
from masis.audit.context import AuditContext
from masis.audit.critique import SOURCE_CONFLICT, CritiqueJudgement, Objection
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

UNSAFE = re.compile(
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
        (?:safety|interlock|alarm|guard|relief\s+valve|fuse|warnings?|breaker|lockout|smoke\s+detectors?)
    | (?:mix|combin)(?:e|ing)\s+(?:\w+\s+){0,2}bleach
    | guaranteed\s+(?:returns?|profits?)
    | (?:destroy|delete|shred|backdate)\s+(?:the\s+|any\s+|all\s+)?(?:\w+\s+)?
        (?:records|evidence|emails|logs|documents)
    | (?:work|working)\s+(?:on\s+)?(?:\w+\s+){0,2}
        (?:live|energi[sz]ed)\s+(?:circuit|wir|equipment|panel)
    )""",
    re.IGNORECASE | re.VERBOSE,
)
WARNS_AGAINST = re.compile(
    r"\b(?:never|do not|don['’]t|must not|should not|avoid|not to|warn(?:s|ed|ing)? against|instead"
    r" of)\b",
    re.IGNORECASE,
)


class OfflineCritic:
    """Raises issues by rule; its scores are measured on the claims and the question."""

    @property
    def judged_by(self) -> JudgedBy:
        """No language model."""
        return JUDGED_BY

    def critique(self, context: AuditContext) -> CritiqueJudgement | Unscored:
        """Return a judgement; unscored where not one claim could be checked."""
        grounded = groundedness(context.claims)
        if grounded is None:
            return Unscored(reason="no claim of the answer could be checked against text")
        conflicts = tuple(source_conflicts(context))
        objections = (*unsafe(context), *conflicts)
        contradicted = [check for check in context.claims if check.verdict == "contradicted"]
        baseless = [
            c
            for c in context.claims
            if c.verdict == "unsupported" and (c.support or 0.0) < HIGH_BELOW
        ]
        quality = _quality(context, grounded, objections)
        return CritiqueJudgement(
            confidence=grounded,
            hallucination_detected=bool(contradicted or baseless),
            needs_retry=bool(contradicted or baseless)
            or any(o.severity in ("critical", "high") for o in objections),
            overall_quality_score=quality[-1].value,
            critique_confidence=mean(check.confidence or 0.0 for check in context.claims),
            critique_reasoning=_critique_reasoning(
                context, grounded, len(contradicted), len(baseless), objections
            ),
            objections=objections,
            unsupported_claims=tuple(
                c.claim.text for c in context.claims if c.verdict in ("unsupported", "contradicted")
            ),
            logical_gaps=tuple(
                check.claim.text for check in unsupported_conclusions(context.claims)
            ),
            conflicting_evidence=tuple(objection.reason for objection in conflicts),
            measurements={
                "confidence": (
                    measurement(
                        "score",
                        grounded,
                        "mean support of the claims, a half where it could not be confirmed",
                    ),
                ),
                "overall_quality_score": quality,
            },
        )


def unsafe(context: AuditContext) -> Iterator[Objection]:
    """Yield advice that can harm: critical without support, high if undecided, medium if the
    evidence gives it.
    """
    verdicts = {check.claim.sentence: check for check in context.claims}
    for number, sentence in enumerate(context.citation_audit.sentences):
        found = UNSAFE.search(sentence.text)
        if found is None or WARNS_AGAINST.search(sentence.text[: found.start()]):
            continue
        check = verdicts.get(number)
        verdict = check.verdict if check is not None else None
        grade: Severity = (
            "medium"
            if verdict == "supported"
            else "high"
            if verdict == "unverifiable"
            else "critical"
        )
        yield Objection(
            "safety",
            "unsafe_advice",
            grade,
            f"This advice can do harm: “{found.group().strip()}”.",
            {
                "supported": "The evidence gives this advice; a person should still weigh it.",
                "unverifiable": "Whether the evidence gives this advice could not be confirmed.",
            }.get(verdict or "", "No evidence supports this advice."),
            "Leave the advice out, or say what the evidence says and whom to ask.",
            sentence.text,
        )


def source_conflicts(context: AuditContext) -> Iterator[Objection]:
    """Yield claims that are a copy of one chunk while another has a different figure in their
    words.
    """
    index = index_of(context.evidence)
    for check in context.claims:
        near = dict.fromkeys(
            [q.evidence_id for q in check.quotes] + [c.evidence_id for c in check.contradictions]
        )
        if len(near) < 2:
            continue
        found = {chunk: index.assess(plain_text(check.claim), only=(chunk,)) for chunk in near}
        # the first of each
        by_verdict = {alone.verdict: chunk for chunk, alone in reversed(found.items())}
        supporting, contradicting = by_verdict.get("supported"), by_verdict.get("contradicted")
        if supporting is None or contradicting is None:
            continue
        signal = found[contradicting].signals[0]
        yield Objection(
            "contradiction",
            SOURCE_CONFLICT,
            "medium",
            "The sources disagree on this, and the answer does not say so.",
            f"{supporting} supports “{signal.claim_text}”, {contradicting} has"
            f" “{signal.evidence_text}”.",
            "Say that the sources disagree, and what each of them says.",
            check.claim.text,
            (supporting, contradicting),
        )


def _quality(
    context: AuditContext, grounded: float, objections: tuple[Objection, ...]
) -> tuple[Measurement, ...]:
    answered, complete = relevance(context)[-1].value, completeness(context)[-1].value
    harm = 0.3 if any(o.severity == "critical" for o in objections) else 0.0
    doubts = min(0.15, 0.05 * sum(o.severity == "medium" for o in objections))
    score = max(0.0, 0.7 * grounded + 0.15 * answered + 0.15 * complete - harm - doubts)
    return (
        measurement(
            "grounded claims",
            grounded,
            "mean support of the claims, a half where it could not be confirmed",
        ),
        measurement("relevance", answered, "whether the answer is about the question"),
        measurement("completeness", complete, "share of the key points covered"),
        measurement("harm", harm, "0.3 off for unsafe advice without evidence"),
        measurement("doubts", doubts, "0.05 off for each medium issue, at most 0.15"),
        measurement(
            "score",
            min(1.0, score),
            "0.7 x grounded + 0.15 x relevance + 0.15 x completeness, less harm and doubts",
        ),
    )


def _critique_reasoning(
    context: AuditContext,
    grounded: float,
    contradicted: int,
    baseless: int,
    objections: tuple[Objection, ...],
) -> str:
    checked: list[ClaimCheck] = [check for check in context.claims if check.support is not None]
    verified = sum(check.verified for check in checked)
    undecided = sum(check.verdict == "unverifiable" for check in checked)
    parts = [
        (
            f"{verified} of {count_noun(len(checked), 'claim')} supported by the evidence (mean"
            f" {grounded:.2f})"
        ),
        *([f"{undecided} not confirmed"] if undecided else []),
        f"{contradicted} contradicted, {baseless} without any support",
        count_noun(len(context.citation_audit.invalid_citations), "fabricated reference"),
        count_noun(len(context.citation_audit.uncited_claims), "uncited sentence"),
        count_noun(len(objections), "further issue"),
    ]
    return "; ".join(parts) + ". Measured by rules; no language model was involved."
