"""Verify claims again without the passages that decide them.

If the verdict stands without its passages, they weren't the reason for it: the same is said
elsewhere in the evidence, or the verifier didn't read it from there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from masis.api.audits import verify_against_each
from masis.api.roles import estimate
from masis.audit import limits
from masis.errors import InputError, StepError
from masis.llm.estimates import CostEstimate
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
from masis.schema.wording import count_noun
from masis.services.access import OPEN, Access, requires
from masis.services.background import BackgroundTask, BackgroundTasks
from masis.services.cases import assert_machine_shown
from masis.services.records import DecisionFilter
from masis.settings import OFFLINE, ROLES, Settings
from masis.store import Store

VERIFY_WITHOUT_PASSAGES = "verify claims again without their passages"


class _ClaimToVerify(NamedTuple):
    """A claim to verify, by its number, and the passages that decide it.

    ``entry`` is the log entry with the label that names them; None if the audit named them.
    """

    number: int
    check: ClaimCheck
    passages: tuple[LabelPassage, ...]
    entry: LogEntry | None


class MinimalEvidencePlan(NamedTuple):
    """The verification of claims before it starts.

    Attributes:
        claims: The text of each claim with passages, by its number.
        models: The models that judge; none offline.
        cost: The most that each claim may need, by its number.

    """

    claims: dict[int, str]
    models: tuple[str, ...]
    cost: dict[int, CostEstimate]


class PassageVerification(BackgroundTask):
    """Claims of one case that are verified on a thread."""

    def __init__(
        self, work: Callable[[PassageVerification], Sequence[MinimalEvidence]], total: int
    ) -> None:
        super().__init__()
        self._verify, self.total, self.done = work, total, 0

    def work(self) -> None:
        """Verify the claims; each result is stored at once."""
        self._verify(self)

    @property
    def share(self) -> float:
        """The share of the claims that are verified."""
        return self.done / self.total if self.total else 1.0

    @property
    def progress_text(self) -> str:
        """The number of verified claims."""
        return f"Verified {self.done:,} of {count_noun(self.total, 'claim')} without passages"


class MinimalEvidenceService:
    """The use cases of verifying claims of stored audits without their passages."""

    def __init__(self, store: Store, settings: Settings, access: Access = OPEN) -> None:
        self._store, self._settings, self.access = store, settings, access
        self._tasks: BackgroundTasks[PassageVerification] = BackgroundTasks()

    @requires("audit", VERIFY_WITHOUT_PASSAGES)
    def plan(self, actor: Actor, case_id: str, *, iteration: int = 1) -> MinimalEvidencePlan:
        """Return the claims that can be verified, and the most that each may cost.

        Raises:
            UnknownRecord: There is no such case.
            ResultsHidden: The policy hides the audit's results from this person.
            InputError: The audit can't be repeated.

        """
        case = self._store.cases.get(case_id)
        targets, settings = self._targets(actor, case, None, iteration)[1:]
        alone = settings.with_values({"max_iterations": 1})
        models = {name for name in settings.models().values() if name != OFFLINE}
        cost: dict[int, CostEstimate] = {}
        for target in targets:
            one = estimate(case.model_copy(update={"answer": target.check.claim.text}), alone)
            cost[target.number] = one.plus(one)  # once with and once without the passages
        claims = {target.number: target.check.claim.text for target in targets}
        return MinimalEvidencePlan(claims, tuple(sorted(models)), cost)

    @requires("audit", VERIFY_WITHOUT_PASSAGES)
    def start(
        self, actor: Actor, case_id: str, *, claim: int | None = None, iteration: int = 1
    ) -> PassageVerification:
        """Start ``verify`` on a thread, unless the case's claims are being verified already.

        Raises:
            UnknownRecord: There is no such case.
            ResultsHidden: The policy hides the audit's results from this person.
            InputError: There is no such claim, it has no passages, or the audit can't be repeated.

        """
        case = self._store.cases.get(case_id)
        targets = self._targets(actor, case, claim, iteration)[1]

        def work(task: PassageVerification) -> Sequence[MinimalEvidence]:
            def on_progress(done: int) -> bool:
                task.done = done
                return not task.stopping

            return self.verify(
                actor, case_id, claim=claim, iteration=iteration, on_progress=on_progress
            )

        return self._tasks.start(case_id, lambda: PassageVerification(work, len(targets)))

    def latest(self, case_id: str) -> PassageVerification | None:
        """Return the latest verification that this server started on a case, or None."""
        return self._tasks.get(case_id)

    @requires("audit", VERIFY_WITHOUT_PASSAGES)
    def verify(
        self,
        actor: Actor,
        case_id: str,
        *,
        claim: int | None = None,
        iteration: int = 1,
        on_progress: Callable[[int], bool] | None = None,
    ) -> tuple[MinimalEvidence, ...]:
        """Verify claims of the newest audit with and without their passages, and store the results.

        The passages are those that a label on the claim names, limited to what this person may see
        (their own label first), or else those of the audit. The claim is verified alone, by the
        verifier of the audit with its settings, once with all the evidence and once without the
        words of the passages.

        Args:
            actor: Who asks.
            case_id: The case.
            claim: The number of the claim in its iteration, from 1. By default, all claims with
                passages are verified.
            iteration: The audited answer, from 1: the original answer by default.
            on_progress: Called with the number of verified claims; it returns whether to go on.

        Returns:
            One result for each claim with passages, in order; none if no claim has any.

        Raises:
            UnknownRecord: There is no such case.
            ResultsHidden: The policy hides the audit's results from this person.
            InputError: There is no such claim, it has no passages, or the audit can't be repeated.
            StepError: The verifier gave no verdict.

        """
        case = self._store.cases.get(case_id)
        run, targets, settings = self._targets(actor, case, claim, iteration)
        audited = run.iterations[iteration - 1]
        evidence = limits.select_evidence(case.evidence, audited.citation_audit, settings)
        results: list[MinimalEvidence] = []
        for target in targets:
            checks, usage = self._verdicts(case, target.check, target.passages, evidence, settings)
            before, after = checks
            decision = target.entry.decision if target.entry else None
            result = MinimalEvidence(
                case_id=case_id,
                run_id=run.id,
                iteration=iteration,
                claim=target.number,
                text=target.check.claim.text,
                start=target.check.claim.start,
                end=target.check.claim.end,
                passages=target.passages,
                label_by=decision.reviewer if decision else "",
                entry_id=target.entry.id if target.entry else "",
                audited=target.check.verdict,
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
            if on_progress is not None and not on_progress(len(results)):
                break
        return tuple(results)

    def _targets(
        self, actor: Actor, case: Case, claim: int | None, iteration: int
    ) -> tuple[Run, list[_ClaimToVerify], Settings]:
        """Return the run, the claims to verify, and the settings of the verifier."""
        assert_machine_shown(self._store, actor, case.id)
        run, audited = self._audited(case.id, iteration)
        entries = self._labelling_entries(actor, case.id)
        numbers = range(1, len(audited.claims) + 1) if claim is None else (claim,)
        if claim is not None and not 1 <= claim <= len(audited.claims):
            raise InputError(
                f"is {claim}, and the answer has {len(audited.claims)} claims",
                hint="Claims are counted from 1.",
                field="claim",
            )
        settings = verifier_settings(run, self._settings)
        evidence = limits.select_evidence(case.evidence, audited.citation_audit, settings)
        found: list[_ClaimToVerify] = []
        for number in numbers:
            check = audited.claims[number - 1]
            passages, entry = _deciding_passages(check, entries, evidence, audited.answer)
            if passages:
                found.append(_ClaimToVerify(number, check, passages, entry))
        if claim is not None and not found:
            raise InputError(
                "has no passage that decides its verdict",
                hint="Label the claim with a passage of the evidence first.",
                field="claim",
            )
        return run, found, settings

    @requires("read")
    def results(self, actor: Actor, case_id: str) -> tuple[MinimalEvidence, ...]:
        """Return the stored results on a case that this person may see.

        Raises:
            UnknownRecord: There is no such case.
            ResultsHidden: The policy hides the audit's results from this person.

        """
        self._store.cases.summary(case_id)
        assert_machine_shown(self._store, actor, case_id)
        return self._store.minimal_evidence.of_case(case_id, actor.name)

    def _audited(self, case_id: str, iteration: int) -> tuple[Run, Iteration]:
        """Return the newest finished run of a case, and one of its iterations."""
        runs = self._store.runs.for_case(case_id)
        run_id = next((run.id for run in runs if run.readable), None)
        if run_id is None:
            raise InputError("This case has no finished audit", hint="Audit it first.")
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
            "This case was audited with recorded replies, which can't judge it on other evidence",
            hint="Audit it with a model or offline first.",
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
