"""Two verifiers in a row: the second is asked only about claims that the first left undecided.

The first is a filter that costs nothing; the second understands more, but costs time or money. The
record with the claims has the number of claims sent to each verifier, and the savings
(``ClaimReport.escalation``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from masis.audit.claims import ClaimResults, Verifier, check_answer, one_check_each
from masis.schema.audit import CitationAudit, Claim, ClaimCheck, Escalation, JudgedBy
from masis.schema.case import ClaimVerdict, Evidence
from masis.schema.run import LocalModel

UNDECIDED_VERDICTS: frozenset[ClaimVerdict] = frozenset({"unverifiable", "partial", "unscored"})
"""Verdicts of the first verifier that send a claim to the second."""


class Savings(NamedTuple):
    """The calls to a language model that were made and those that were saved.

    The saved ones are those that the second verifier would have needed. ``cost_usd`` estimates
    their cost; it is None if no price is known or no model is asked.
    """

    calls: int = 0
    calls_saved: int = 0
    cost_usd: float | None = None


EstimateSavings = Callable[[str, str, Sequence[Evidence], int, int, bool], Savings]
"""Estimates the savings of a claim check.

Its arguments are the question, the answer, the evidence, the number of claims, the number sent to
the second verifier, and whether completeness was asked for.
"""


@dataclass(frozen=True)
class EscalatingVerifier:
    """Asks the first verifier about every claim, and the second about those left undecided.

    The first also finds the claims and the missing points. ``names`` are the model strings of both;
    ``spare`` estimates the savings.
    """

    first: Verifier
    second: Any
    names: tuple[str, str]
    spare: EstimateSavings = lambda *arguments: Savings()

    @property
    def judged_by(self) -> JudgedBy:
        """The second verifier with its version; the first's is the version of the offline rules."""
        judged_by: JudgedBy = self.second.judged_by
        return judged_by

    @property
    def local_model(self) -> LocalModel | None:
        """The model file of the second verifier, if it runs on this machine."""
        local_model: LocalModel | None = getattr(self.second, "local_model", None)
        return local_model

    @property
    def languages(self) -> frozenset[str] | None:
        """The languages of the second verifier, or None for any.

        The second verifier is asked whenever the first abstains.
        """
        languages: frozenset[str] | None = getattr(self.second, "languages", None)
        return languages

    def extract(self, answer: str, audit: CitationAudit, query: str) -> tuple[Claim, ...]:
        """Return the claims that the first verifier finds."""
        return self.first.extract(answer, audit, query)

    def verify(
        self, claims: Sequence[Claim], evidence: Sequence[Evidence]
    ) -> tuple[ClaimCheck, ...]:
        """Return one check for each claim, in order, from the verifier that decided it."""
        return self._ask_second(
            claims, one_check_each(claims, self.first.verify(claims, evidence)), evidence
        )[0]

    def check(
        self,
        claims: Sequence[Claim],
        query: str,
        answer: str,
        evidence: Sequence[Evidence],
        *,
        completeness: bool,
    ) -> ClaimResults:
        """Check every claim and, if asked for, find missing points.

        The results record how many claims the second verifier was asked about.
        """
        results = self.first.check(claims, query, answer, evidence, completeness=completeness)
        return self._verify_in_stages(claims, results, query, answer, evidence, completeness)

    def check_answer(
        self,
        answer: str,
        audit: CitationAudit,
        query: str,
        evidence: Sequence[Evidence],
        *,
        completeness: bool,
    ) -> tuple[tuple[Claim, ...], ClaimResults]:
        """Return the claims that the first verifier finds, with the results of ``check``."""
        claims, results = check_answer(
            self.first, answer, audit, query, evidence, completeness=completeness
        )
        return claims, self._verify_in_stages(
            claims, results, query, answer, evidence, completeness
        )

    def _verify_in_stages(
        self,
        claims: Sequence[Claim],
        first_results: ClaimResults,
        query: str,
        answer: str,
        evidence: Sequence[Evidence],
        completeness: bool,
    ) -> ClaimResults:
        checks, escalated = self._ask_second(
            claims, one_check_each(claims, first_results.checks), evidence
        )
        savings = self.spare(query, answer, evidence, len(claims), escalated, completeness)
        record = Escalation(
            first=self.names[0],
            second=self.names[1],
            settled=len(claims) - escalated,
            escalated=escalated,
            calls=savings.calls,
            calls_saved=savings.calls_saved,
            cost_saved_usd=savings.cost_usd,
        )
        return first_results._replace(checks=checks, escalation=record)

    def _ask_second(
        self, claims: Sequence[Claim], checks: Sequence[ClaimCheck], evidence: Sequence[Evidence]
    ) -> tuple[tuple[ClaimCheck, ...], int]:
        """Return the checks with the second verifier's in place of undecided ones.

        The second value is the number of claims that the second verifier was asked about.
        """
        has_text = any(chunk.text.strip() for chunk in evidence)
        undecided = [
            position
            for position, check in enumerate(checks)
            if has_text and check.verdict in UNDECIDED_VERDICTS
        ]
        if not undecided:
            return tuple(checks), 0
        claims_to_ask = [claims[position] for position in undecided]
        second_checks = one_check_each(claims_to_ask, self.second.verify(claims_to_ask, evidence))
        # Keep the figures that the first didn't find in the evidence and the words it marked,
        # regardless of what the second decides.
        decided = {
            position: check.model_copy(
                update={
                    "figures": checks[position].figures,
                    "marked": (*checks[position].marked, *check.marked),
                }
            )
            for position, check in zip(undecided, second_checks, strict=True)
        }
        merged = tuple(decided.get(position, check) for position, check in enumerate(checks))
        return merged, len(undecided)
