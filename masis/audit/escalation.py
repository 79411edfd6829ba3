"""Two verifiers in a row: the second is asked only for what the first could not settle.

The first is a screen that costs nothing; the second understands, and costs time or money. What was
asked of whom, and what that saved, is recorded with the claims (``ClaimReport.escalation``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from masis.audit.claims import ClaimResults, Verifier, check_answer, one_check_each
from masis.schema.audit import CitationAudit, Claim, ClaimCheck, Escalation, JudgedBy
from masis.schema.case import ClaimVerdict, Evidence
from masis.schema.run import LocalModel

UNSETTLED: frozenset[ClaimVerdict] = frozenset({"unverifiable", "partial", "unscored"})
"""Verdicts of the first that ask for the second: it abstained, found part of the claim only, or
failed.
"""


class Savings(NamedTuple):
    """Calls to a language model that were made, and those that the second verifier alone would have
    made beyond them.

    ``cost_usd`` is an estimate of what those would have cost; None where no price is known or none
    is asked.
    """

    calls: int = 0
    calls_saved: int = 0
    cost_usd: float | None = None


EstimateSavings = Callable[[str, str, Sequence[Evidence], int, int, bool], Savings]
"""Question, answer, evidence, number of claims, for how many the second was asked, whether
completeness was wanted.
"""


@dataclass(frozen=True)
class EscalatingVerifier:
    """The first verifier for every claim, the second for those it left unsettled.

    Claims are found, and what is left out as well, by the first. ``names`` are the model strings of
    both; ``spare`` estimates what was saved.
    """

    first: Verifier
    second: Any
    names: tuple[str, str]
    spare: EstimateSavings = lambda *asked: Savings()

    @property
    def judged_by(self) -> JudgedBy:
        """The second, with its version: the first's is that of the offline weights."""
        found: JudgedBy = self.second.judged_by
        return found

    @property
    def local_model(self) -> LocalModel | None:
        """What a run records of the second, where that is a model file on this machine."""
        found: LocalModel | None = getattr(self.second, "local_model", None)
        return found

    @property
    def languages(self) -> frozenset[str] | None:
        """Those of the second, which is asked wherever the first abstains; None where it names
        none.
        """
        found: frozenset[str] | None = getattr(self.second, "languages", None)
        return found

    def extract(self, answer: str, audit: CitationAudit, query: str) -> tuple[Claim, ...]:
        """Find the claims as the first does."""
        return self.first.extract(answer, audit, query)

    def verify(
        self, claims: Sequence[Claim], evidence: Sequence[Evidence]
    ) -> tuple[ClaimCheck, ...]:
        """Return one check for each claim, in order, by whoever could settle it."""
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
        """Check every claim, with what is left out by the first where asked for, and record what
        was asked of whom.
        """
        whole = self.first.check(claims, query, answer, evidence, completeness=completeness)
        return self._verify_in_stages(claims, whole, query, answer, evidence, completeness)

    def check_answer(
        self,
        answer: str,
        audit: CitationAudit,
        query: str,
        evidence: Sequence[Evidence],
        *,
        completeness: bool,
    ) -> tuple[tuple[Claim, ...], ClaimResults]:
        """The same with the claims, which the first finds as it does alone."""
        claims, whole = check_answer(
            self.first, answer, audit, query, evidence, completeness=completeness
        )
        return claims, self._verify_in_stages(claims, whole, query, answer, evidence, completeness)

    def _verify_in_stages(
        self,
        claims: Sequence[Claim],
        whole: ClaimResults,
        query: str,
        answer: str,
        evidence: Sequence[Evidence],
        completeness: bool,
    ) -> ClaimResults:
        checks, asked = self._ask_second(claims, one_check_each(claims, whole.checks), evidence)
        spared = self.spare(query, answer, evidence, len(claims), asked, completeness)
        record = Escalation(
            first=self.names[0],
            second=self.names[1],
            settled=len(claims) - asked,
            escalated=asked,
            calls=spared.calls,
            calls_saved=spared.calls_saved,
            cost_saved_usd=spared.cost_usd,
        )
        return whole._replace(checks=checks, escalation=record)

    def _ask_second(
        self, claims: Sequence[Claim], checks: Sequence[ClaimCheck], evidence: Sequence[Evidence]
    ) -> tuple[tuple[ClaimCheck, ...], int]:
        """Return the checks with the second's in place of those that were unsettled, and how many
        it was asked for.
        """
        readable = any(chunk.text.strip() for chunk in evidence)
        open_at = [at for at, check in enumerate(checks) if readable and check.verdict in UNSETTLED]
        if not open_at:
            return tuple(checks), 0
        asked = [claims[at] for at in open_at]
        second = one_check_each(asked, self.second.verify(asked, evidence))
        # A figure that the first did not find in the evidence, and words that it marked, stay so,
        # whoever judges.
        decided = {
            at: check.model_copy(
                update={
                    "figures": checks[at].figures,
                    "marked": (*checks[at].marked, *check.marked),
                }
            )
            for at, check in zip(open_at, second, strict=True)
        }
        return tuple(decided.get(at, check) for at, check in enumerate(checks)), len(open_at)
