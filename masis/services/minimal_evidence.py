"""Verify claims again without the passages that decide them.

If the verdict stands without its passages, they weren't the reason for it: the same is said
elsewhere in the evidence, or the verifier didn't read it from there.
"""

from __future__ import annotations

from masis.api.audits import verify_against_each
from masis.audit import limits
from masis.errors import InputError, ResultsHidden, StepError
from masis.schema.actor import Actor
from masis.schema.audit import Claim, ClaimCheck
from masis.schema.calls import Usage
from masis.schema.case import Case, Evidence
from masis.schema.labels import LabelPassage, TargetLabel
from masis.schema.minimal_evidence import (
    MinimalEvidence,
    audit_passages,
    passages_in,
    remove_passages,
)
from masis.schema.review import LogEntry
from masis.schema.run import Iteration, Run
from masis.services.access import OPEN, Access, requires
from masis.services.cases import machine_hidden
from masis.services.records import DecisionFilter
from masis.settings import OFFLINE, ROLES, Settings
from masis.store import Store

VERIFY_WITHOUT_PASSAGES = "verify claims again without their passages"


class MinimalEvidenceService:
    """The use cases of verifying claims of stored audits without their passages."""

    def __init__(self, store: Store, settings: Settings, access: Access = OPEN) -> None:
        self._store, self._settings, self.access = store, settings, access

    @requires("audit", VERIFY_WITHOUT_PASSAGES)
    def verify(
        self, actor: Actor, case_id: str, *, claim: int | None = None, iteration: int = 1
    ) -> tuple[MinimalEvidence, ...]:
        """Verify claims of the newest audit with and without their passages, and store the results.

        The passages are those that a label on the claim names, as far as this person may see it
        (their own label first), or else those of the audit. The claim is verified alone, by the
        verifier of the audit with its settings, once with all the evidence and once without the
        words of the passages.

        Args:
            actor: Who asks.
            case_id: The case.
            claim: The number of the claim in its iteration, from 1. By default, all claims with
                passages are verified.
            iteration: The audited answer, from 1: the original answer by default.

        Returns:
            One result for each claim with passages, in order; none if no claim has any.

        Raises:
            UnknownRecord: There is no such case.
            ResultsHidden: The policy hides the audit's results from this person.
            InputError: There is no such claim, it has no passages, or the audit can't be repeated.
            StepError: The verifier gave no verdict.

        """
        case = self._store.cases.get(case_id)
        self._check_shown(actor, case_id)
        run, audited = self._audited(case_id, iteration)
        entries = self._labelling_entries(actor, case_id)
        numbers = range(1, len(audited.claims) + 1) if claim is None else (claim,)
        if claim is not None and not 1 <= claim <= len(audited.claims):
            raise InputError(
                f"is {claim}, and the answer has {len(audited.claims)} claims",
                hint="Claims are counted from 1.",
                field="claim",
            )
        settings = verifier_settings(run, self._settings)
        evidence = limits.evidence_within(case.evidence, audited.citation_audit, settings)
        found = []
        for number in numbers:
            check = audited.claims[number - 1]
            passages, entry = _deciding_passages(check, entries, evidence, audited.answer)
            if passages:
                found.append((number, check, passages, entry))
        if claim is not None and not found:
            raise InputError(
                "has no passage that decides its verdict",
                hint="Label the claim with a passage of the evidence first.",
                field="claim",
            )
        results = []
        for number, check, passages, entry in found:
            checks, usage = self._verdicts(case, check, passages, evidence, settings)
            before, after = checks
            decision = entry.decision if entry else None
            result = MinimalEvidence(
                case_id=case_id,
                run_id=run.id,
                iteration=iteration,
                claim=number,
                text=check.claim.text,
                start=check.claim.start,
                end=check.claim.end,
                passages=passages,
                label_by=decision.reviewer if decision else "",
                entry_id=entry.id if entry else "",
                audited=check.verdict,
                before=before.verdict,
                after=after.verdict,
                decisive=before.verdict != after.verdict,
                judged_by=after.judged_by,
                usage=usage,
                by=actor.name,
                at=self._store.database.now(),
            )
            # Stored one by one, so that a failure loses no verdict that was paid for.
            self._store.minimal_evidence.add(result)
            results.append(result)
        return tuple(results)

    @requires("read")
    def results(self, actor: Actor, case_id: str) -> tuple[MinimalEvidence, ...]:
        """Return the stored results on a case that this person may see.

        Raises:
            UnknownRecord: There is no such case.
            ResultsHidden: The policy hides the audit's results from this person.

        """
        self._store.cases.summary(case_id)
        self._check_shown(actor, case_id)
        return self._store.minimal_evidence.of_case(case_id, actor.name)

    def _check_shown(self, actor: Actor, case_id: str) -> None:
        if machine_hidden(self._store, actor, case_id):
            raise ResultsHidden(
                "The team's policy hides the audit's results until you decide the case."
            )

    def _audited(self, case_id: str, iteration: int) -> tuple[Run, Iteration]:
        """Return the newest finished run of a case, and one of its iterations."""
        runs = self._store.runs.for_case(case_id)
        run_id = next((run.id for run in runs if run.readable), None)
        if run_id is None:
            raise InputError("has no finished audit", hint="Audit the case first.", field="case")
        run = self._store.runs.get(run_id)
        if not 1 <= iteration <= len(run.iterations):
            raise InputError(
                f"is {iteration}, and the audit has {len(run.iterations)}",
                hint="Iteration 1 is the original answer.",
                field="iteration",
            )
        return run, run.iterations[iteration - 1]

    def _labelling_entries(self, actor: Actor, case_id: str) -> list[LogEntry]:
        """Return the visible decisions that weren't undone: the actor's own first, then newest
        first.
        """
        seen = DecisionFilter(case_id=case_id, size=200, blind_to=actor.name)
        entries = self._store.decisions.entries(seen).rows
        undone = {entry.decision.undoes for entry in entries if entry.decision}
        made = [
            (entry.decision.reviewer != actor.name, entry)
            for entry in entries
            if entry.decision is not None
            and entry.decision.kind in ("decision", "adjudication")
            and entry.id not in undone
        ]
        # Sorting is stable, so each part stays newest first.
        return [entry for _, entry in sorted(made, key=lambda pair: pair[0])]

    def _verdicts(
        self,
        case: Case,
        check: ClaimCheck,
        passages: tuple[LabelPassage, ...],
        evidence: tuple[Evidence, ...],
        settings: Settings,
    ) -> tuple[tuple[ClaimCheck, ClaimCheck], Usage]:
        """Return the checks of a claim with and without its passages, and what they used."""
        reduced = tuple(
            chunk.model_copy(update={"text": remove_passages(chunk.id, chunk.text, passages)})
            for chunk in evidence
        )
        replies = self._store.replies_of(case.id) if settings.cache else None
        (before, after), usage = verify_against_each(
            check.claim, (evidence, reduced), settings, replies, case_id=case.id
        )
        for verified in (before, after):
            if verified.verdict == "unscored":
                reason = verified.unscored.reason if verified.unscored else "no reply"
                raise StepError(f"The verifier gave no verdict on the claim: {reason}")
        return (before, after), usage


def verifier_settings(run: Run, settings: Settings) -> Settings:
    """Return the settings of a run for its verifier, with today's keys and addresses.

    Raises:
        InputError: The verifier's replies came from a file, so that it can't be asked anything new.

    """
    stored = settings.with_values(run.settings)
    # A thorough audit asks the critic's model about the claims that the verifier leaves open.
    judging = ("verifier", "critic") if stored.depth == "thorough" else ("verifier",)
    if any(stored.model_refs()[role].is_replay for role in judging):
        raise InputError(
            "was audited with recorded replies, which have no verdict on other evidence",
            hint="Audit the case with a model or offline first.",
            field="case",
        )
    # The other roles aren't needed, so their models may be gone.
    return stored.with_values({role: OFFLINE for role in ROLES if role not in judging})


def _deciding_passages(
    check: ClaimCheck, entries: list[LogEntry], evidence: tuple[Evidence, ...], answer: str
) -> tuple[tuple[LabelPassage, ...], LogEntry | None]:
    """Return the passages that decide a claim, and the entry whose label names them.

    Without such a label they are the audit's, and there is no entry. Passages whose words aren't in
    the checked evidence are left out.
    """
    for entry in entries:
        labels = entry.decision.labels if entry.decision else ()
        for label in sorted(
            (label for label in labels if _is_about(label, check.claim, answer)),
            # A label on exactly the claim's words says most about it.
            key=lambda label: (label.start, label.end) != (check.claim.start, check.claim.end),
        ):
            if passages := _in_evidence(label.evidence, evidence):
                return passages, entry
    return _in_evidence(audit_passages(check), evidence), None


def _is_about(label: TargetLabel, claim: Claim, answer: str) -> bool:
    """Return whether a label is on words of this answer that overlap a claim."""
    if None in (label.start, label.end, claim.start, claim.end):
        return False
    start, end = label.start or 0, label.end or 0
    overlaps = start < (claim.end or 0) and (claim.start or 0) < end
    return overlaps and answer[start:end] == label.text


def _in_evidence(
    passages: tuple[LabelPassage, ...], evidence: tuple[Evidence, ...]
) -> tuple[LabelPassage, ...]:
    placed = [
        passage for chunk in evidence for passage in passages_in(chunk.id, chunk.text, passages)
    ]
    return tuple(dict.fromkeys(placed))
