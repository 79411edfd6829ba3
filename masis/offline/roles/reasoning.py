"""How an answer is argued, as far as form shows it: repeats, conclusions without ground, sentences without end."""

from __future__ import annotations

import re

from masis.audit.context import AuditContext
from masis.offline.matching.key_points import mean, plain_text, stems
from masis.schema.audit import Claim, ClaimCheck, Measurement

CONCLUDES = re.compile(
    r"\b(?:therefore|thus|hence|consequently|as a result|it follows that|this (?:proves|means|shows) that)\b", re.I
)
LONG_WORDS = 60
REPEATED = 0.85


def flaws(context: AuditContext) -> tuple[Measurement, ...]:
    """What mars the reasoning, each as what it takes from a perfect score."""
    texts = [sentence.text for sentence in context.citation_audit.sentences if sentence.status != "exempt"]
    conclusions = [check for check in context.claims if CONCLUDES.search(check.claim.text)]
    return (
        Measurement(
            name="repeats",
            value=0.5 * mean(_repeats(texts)),
            meaning="half the share of sentences that say the same again",
        ),
        Measurement(
            name="conclusions without ground",
            value=0.5 * mean(not check.verified for check in conclusions),
            meaning="half the share of conclusions that the evidence does not bear",
        ),
        Measurement(
            name="run-on sentences",
            value=0.3 * mean(len(text.split()) > LONG_WORDS for text in texts),
            meaning=f"0.3 x the share of sentences over {LONG_WORDS} words",
        ),
        Measurement(
            name="denied claims",
            value=0.4 * mean(check.verdict == "contradicted" for check in context.claims),
            meaning="0.4 x the share of claims that the evidence contradicts",
        ),
    )


def unsupported_conclusions(checks: tuple[ClaimCheck, ...]) -> tuple[ClaimCheck, ...]:
    """Claims that draw a conclusion which the evidence does not bear."""
    return tuple(
        check for check in checks if CONCLUDES.search(check.claim.text) and check.verdict in ("unsupported", "partial")
    )


def _repeats(texts: list[str]) -> list[bool]:
    before: list[frozenset[str]] = []
    found = []
    for text in texts:
        own = stems(plain_text(Claim(text=text)))
        found.append(any(own and len(own & other) / len(own | other) >= REPEATED for other in before))
        before.append(own)
    return found
