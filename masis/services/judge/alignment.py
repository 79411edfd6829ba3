"""Measure the judge by decided cases, and try versions of it on a half that nobody tells it.

People choose decided cases, which are split into halves by question. Rules and examples are written
from the first half. A version is then tried on the held-out half: each of its cases is audited
again with the version and otherwise as before, and both verdicts are compared with people's.
"""

from __future__ import annotations

import json
import secrets
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np
from pydantic import PlainSerializer

from masis.api.roles import build_roles
from masis.audit import loop
from masis.audit.house_rules import HOUSE_RULE
from masis.errors import InputError, MasisError, StepError
from masis.llm.estimates import CostEstimate, estimate, unpriced_models
from masis.observers.observation import AuditStart, run_to_completion
from masis.offline.inference.encoder import load_encoder
from masis.schema.actor import Actor
from masis.schema.audit import Issue
from masis.schema.base import Record
from masis.schema.case import Case
from masis.schema.judge import JudgeBrief, JudgeVersion, question_id
from masis.schema.judge_trials import (
    MOST_TRIED,
    DecidedFilter,
    DecidedSplit,
    Half,
    TrialOutcome,
)
from masis.schema.run import Run
from masis.services.access import OPEN, Access, requires
from masis.services.background import BackgroundTask, BackgroundTasks
from masis.services.judge.briefs import JudgeBriefs
from masis.services.judge.proposals import (
    OverruledFlag,
    RuleProposal,
    SeenCase,
    overruled_flags,
    propose_rules,
)
from masis.services.judge.versions import WRITE_VERSIONS, JudgeService
from masis.services.modes.concepts import Floats
from masis.services.modes.grouping import PatternText
from masis.services.reviews import name_of
from masis.services.trust.service import TrustFilter, TrustService
from masis.settings import ROLES, Settings
from masis.store import Store
from masis.store.audits.runs import figures
from masis.store.reviews.judge_trials import AuditedAnswer
from masis.store.reviews.observations import pattern_of
from masis.trust.agreement import codes
from masis.trust.alignment import (
    EstimateObject,
    JudgeFigures,
    held_out_half,
    is_flagged,
    judge_figures,
)
from masis.trust.machine import AUDIT_VERDICTS, audit_verdict
from masis.trust.paired import compare_shares

if TYPE_CHECKING:
    import pandas as pd  # the functions that need it import it; see agreement.codes

CHOOSE_CASES = "choose the decided cases that measure the judge"
TRY_VERSIONS = "try versions of the judge on decided cases"
"""Acts of several use cases."""

MOST_LISTED = 100
"""Maximum number of false flags, and of misses, that a report lists. The newest ones come first."""

LEAST_CASES = 2
"""With fewer decided questions, a half would be empty."""

MOST_READ = 1_000
"""Maximum number of cases that proposals are made from, each of which is read with its issues."""

AT_ONCE = 4
"""The audits of a trial that run at the same time. They mostly wait for models."""


CostObject = Annotated[
    CostEstimate,
    PlainSerializer(
        lambda cost: cost._asdict(), return_type=dict[str, int | float | None], when_used="json"
    ),
]
"""A cost that is an object in JSON."""


class AlignedCase(Record):
    """A decided case on which people and the audit differ.

    Attributes:
        verdict: The audit's verdict, one of ``AUDIT_VERDICTS``.
        faulty: Whether people found the answer faulty.
        reason: The deciding reviewer's reason.
        issues: The serious issues of the original answer, which are responsible for a false flag.

    """

    case_id: str
    question: str
    verdict: str
    faulty: bool
    reason: str
    issues: tuple[Issue, ...]


class AlignmentReport(Record):
    """The stored audits compared with people on one half of the chosen cases.

    Attributes:
        half: The half; None for both.
        questions: The number of questions.
        answers: The compared answers.
        simulated: How many of the decisions the demo's reviewers made.
        false_flags: Flagged cases that people found right, newest first.
        misses: Cases that people found faulty and the audit didn't flag, newest first.

    """

    half: Half | None
    questions: int
    answers: int
    simulated: int
    figures: JudgeFigures
    false_flags: tuple[AlignedCase, ...]
    misses: tuple[AlignedCase, ...]


class TrialPlan(Record):
    """What trying a version would audit, and the most that it may cost.

    Attributes:
        cases: The decided cases of the held-out half.
        tried: How many of them this content was tried on before, which isn't repeated.
        to_audit: How many a trial audits, at most ``MOST_TRIED``.
        left_out: The numbers of cases that can't be audited again, by reason.
        cost: The most calls, tokens and dollars of the trial.
        unpriced: Models whose price isn't known.

    """

    cases: int
    tried: int
    to_audit: int
    left_out: dict[str, int]
    cost: CostObject
    unpriced: tuple[str, ...]


class ChangedVerdict(Record):
    """A held-out case whose verdict a version changed.

    Attributes:
        flips: Whether the case is flagged with only one of the two judges.
        right_now: Whether "flagged" after the change is what people decided.
        rules: The ids of the house rules that changed its issues. ``SEVERITY_TABLE`` stands for the
            table. Without any, the model answered otherwise.
        issues: The serious issues that only one of the two judges raised, those of the version
            first.

    """

    case_id: str
    question: str
    before: str
    after: str
    faulty: bool
    flips: bool
    right_now: bool
    rules: tuple[str, ...]
    gained: tuple[Issue, ...]
    lost: tuple[Issue, ...]


SEVERITY_TABLE = "severity table"
"""Stands for the severity table among the ids of rules, which have no spaces."""


class JudgeComparison(Record):
    """The stored audits and the trial of a version, on the same held-out cases.

    Attributes:
        cases: The decided cases of the held-out half.
        tried: How many of them the version was tried on; all figures are about these.
        gained: Cases on which only the version agrees with people.
        lost: Cases on which only the stored audit agrees with people.
        difference: The share of cases that agree with people after minus before.
        p: The two-sided p-value of McNemar's exact test of ``gained`` and ``lost``: how often a
            difference this large would occur by chance if neither judge agreed more.
        changes: The cases with another verdict: flips first, and of those the ones that are wrong
            now.
        before_judges: The numbers of cases by the judge version of the stored audit; "" stands for
            the default judge.
        other_prompts: How many stored audits had other prompts or rules, so that the version isn't
            the only difference.

    """

    version: str
    digest: str
    cases: int
    tried: int
    before: JudgeFigures
    after: JudgeFigures
    gained: int
    lost: int
    difference: EstimateObject
    p: float
    changes: tuple[ChangedVerdict, ...]
    before_judges: dict[str, int]
    other_prompts: int

    @property
    def flips(self) -> tuple[ChangedVerdict, ...]:
        """The cases that are flagged with only one of the two judges."""
        return tuple(change for change in self.changes if change.flips)


class _Trial(NamedTuple):
    """A case to audit with a version, and the id of the stored audit."""

    run_id: str
    case: Case
    settings: Settings


class RunningTrial(BackgroundTask):
    """A trial on threads of the server. Each result is stored as soon as there is one."""

    def __init__(
        self, version: JudgeVersion, trials: Sequence[_Trial], audit: Callable[[_Trial], None]
    ) -> None:
        """``audit`` audits one case and stores the result."""
        super().__init__()
        self.version, self.total, self.done = version, len(trials), 0
        self.problems: Counter[str] = Counter()
        self._trials, self._audit = trials, audit

    @property
    def share(self) -> float:
        """The share of the cases that are audited, 0 to 1."""
        return self.done / self.total if self.total else 1.0

    @property
    def progress_text(self) -> str:
        """How many of the cases are audited, in words."""
        return f"{self.version.name}: {self.done:,} of {self.total:,} cases audited"

    def work(self) -> None:
        """Audit the cases. One that fails is counted, and a later trial repeats it."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for problem in pool.map(self._audit_one, self._trials):
                self.done += 1
                if problem:
                    self.problems[problem] += 1

    def _audit_one(self, trial: _Trial) -> str:
        if self.stopping:
            return "the trial was stopped"
        try:
            self._audit(trial)
        except MasisError as error:
            return str(error)
        return ""


_TRIALS: BackgroundTasks[RunningTrial] = BackgroundTasks()


class AlignmentService:
    """The use cases of measuring the judge and trying versions of it."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        trust: TrustService,
        judges: JudgeService,
        access: Access = OPEN,
    ) -> None:
        self._store, self._settings, self.access = store, settings, access
        self._trust, self._judges, self._briefs = trust, judges, JudgeBriefs(store)

    # Choosing

    @requires("read")
    def count_decided(self, actor: Actor, filters: DecidedFilter) -> int:
        """Return how many decided cases match that can measure the judge."""
        return len(self._trust.decided_rows(actor, _trust_filter(filters)))

    @requires("oversee", CHOOSE_CASES)
    def choose(self, actor: Actor, filters: DecidedFilter, seed: int | None = None) -> DecidedSplit:
        """Choose decided cases and split them into halves by question.

        Args:
            actor: A lead.
            filters: The cases; by default those that were decided blind.
            seed: Gives the halves; random if None.

        Raises:
            NotAllowed: The actor isn't a lead.
            InputError: The actor has no name, or there are too few cases.

        """
        by, rows = name_of(actor), self._rows(actor, filters)
        questions = set(rows["question_id"])
        if len(questions) < LEAST_CASES:
            raise InputError(
                f"only {len(questions)} decided questions match, and {LEAST_CASES} are needed",
                hint="Decide more cases, or choose other ones.",
                field="filters",
            )
        seed = secrets.randbelow(1 << 31) if seed is None else seed
        split = DecidedSplit(
            id=secrets.token_hex(6),
            at=self._store.database.now(),
            by=by,
            seed=seed,
            filters=filters,
            cases=len(rows),
            questions=len(questions),
            held_out=held_out_half(questions, seed),
        )
        self._store.judge_trials.add_split(split)
        return split

    @requires("read")
    def split(self, actor: Actor, split_id: str = "") -> DecidedSplit | None:
        """Return a choice of cases by its id, or the newest one; None if there is none yet.

        Raises:
            UnknownRecord: There is no choice with this id.

        """
        return self._store.judge_trials.split(split_id)

    @requires("oversee", WRITE_VERSIONS)
    def hold_out(
        self, actor: Actor, version: JudgeVersion, split: DecidedSplit | None = None
    ) -> JudgeVersion:
        """Let a draft hold out the held-out half of a choice of cases, and return the draft.

        Args:
            actor: A lead.
            version: The draft.
            split: The choice; the newest one if None.

        Raises:
            NotAllowed: The actor isn't a lead.
            InputError: No cases are chosen, or an example of the draft is in the held-out half.
            Conflict: The version isn't a draft any more.

        """
        split = split or self._store.judge_trials.split()
        if split is None:
            raise InputError(
                "no decided cases are chosen", hint="Choose them first.", field="version"
            )
        content = self._store.judges.get(version.id).content
        changed = content.model_copy(update={"held_out": split.held_out})
        return self._judges.change(actor, version.id, changed)

    # Seeing

    @requires("read")
    def measure(
        self, actor: Actor, split: DecidedSplit, half: Half | None = "first"
    ) -> AlignmentReport:
        """Compare the stored audits with people on one half of the chosen cases, or on both.

        Cases are listed only of the first half, because rules that are written from held-out cases
        would be measured by the very cases that they were written for.
        """
        rows = self._rows(actor, split.filters)
        rows = rows[_in_half(rows, split, half)]
        flagged, faulty = is_flagged(rows["found"]), rows["faulty"].to_numpy(dtype=bool)
        listed = rows if half == "first" else rows[:0]
        masks = (flagged & ~faulty, ~flagged & faulty) if half == "first" else (slice(0), slice(0))
        false_flags, misses = (self._list_cases(listed[mask]) for mask in masks)
        return AlignmentReport(
            half=half,
            questions=rows["question_id"].nunique(),
            answers=len(rows),
            simulated=int(rows["simulated"].astype(bool).sum()),
            figures=judge_figures(rows),
            false_flags=false_flags,
            misses=misses,
        )

    @requires("read")
    def propose_rules(self, actor: Actor, split: DecidedSplit) -> tuple[RuleProposal, ...]:
        """Propose house rules where reviewers disagreed with the audit at least three times.

        Only the newest ``MOST_READ`` cases of the first half count, so that the held-out half can
        measure the rules.
        """
        rows = self._rows(actor, split.filters)
        rows = rows[_in_half(rows, split, "first")]
        rows = rows[is_flagged(rows["found"]) | rows["faulty"].to_numpy(dtype=bool)]
        rows = rows.sort_values("entry", ascending=False).head(MOST_READ)
        entries = rows["entry"].astype(int).tolist()
        answers = self._store.judge_trials.audited_answers(
            rows["run_seq"].astype(int).tolist(), entries
        )
        decisions = self._store.trust.decisions_of(entries)
        flags: list[OverruledFlag] = []
        seen: list[SeenCase] = []
        for row in rows.to_dict("records"):
            answer, decision = answers.get(int(row["run_seq"])), decisions.get(int(row["entry"]))
            if answer is None:
                continue
            case = SeenCase(
                answer.case_id,
                answer.iteration,
                row["found"] == AUDIT_VERDICTS[0],
                bool(row["faulty"]),
            )
            seen.append(case)
            if decision is not None:
                flags += overruled_flags(case, decision)
        return self._with_usable_examples(propose_rules(flags, seen, _encode, pattern_of))

    def _with_usable_examples(
        self, proposals: tuple[RuleProposal, ...]
    ) -> tuple[RuleProposal, ...]:
        """Return the proposals without examples that no version may have.

        The decision on such a case is about a revision, for example.
        """
        named = {example.case_id for row in proposals for example in row.rule.examples}
        usable = {example.case_id for example in self._store.judges.examples(sorted(named))}
        return tuple(
            row.model_copy(
                update={
                    "rule": row.rule.model_copy(
                        update={
                            "examples": tuple(
                                example
                                for example in row.rule.examples
                                if example.case_id in usable
                            )
                        }
                    )
                }
            )
            for row in proposals
        )

    def _list_cases(self, rows: pd.DataFrame, most: int = MOST_LISTED) -> tuple[AlignedCase, ...]:
        """Return the cases of rows with their serious issues, newest first."""
        newest = rows.sort_values("entry", ascending=False).head(most)
        answers = self._store.judge_trials.audited_answers(
            newest["run_seq"].astype(int).tolist(), newest["entry"].astype(int).tolist()
        )
        return tuple(
            _aligned_case(answers[int(row["run_seq"])], row["found"], bool(row["faulty"]))
            for row in newest.to_dict("records")
            if int(row["run_seq"]) in answers
        )

    # Trying

    @requires("read")
    def plan(self, actor: Actor, version: JudgeVersion) -> TrialPlan:
        """Return what trying a version would audit, and the most that it may cost.

        Raises:
            InputError: The version holds out no questions.
            MasisError: A model of the stored audits can't be asked.

        """
        rows = self._held_out_rows(actor, version)
        return self._plan(rows, version).plan

    @requires("oversee", TRY_VERSIONS)
    def start(self, actor: Actor, version: JudgeVersion) -> RunningTrial:
        """Try a version in the background, unless a trial of it is running.

        Cases that the same content was tried on before are left out.

        Raises:
            NotAllowed: The actor isn't a lead.
            InputError: The version holds out no questions, or the actor has no name.

        """
        by = name_of(actor)
        rows = self._held_out_rows(actor, version)
        planned = self._plan(rows, version)

        def make() -> RunningTrial:
            task = RunningTrial(
                version,
                planned.trials,
                lambda trial: self._try_case(version, trial, by, lambda: task.stopping),
            )
            return task

        return _TRIALS.start(self._task_name(version), make)

    def latest_trial(self, version: JudgeVersion) -> RunningTrial | None:
        """Return this process's running or last trial of a version, or None."""
        return _TRIALS.get(self._task_name(version))

    def _task_name(self, version: JudgeVersion) -> str:
        # One process may serve several databases, in tests for example.
        return f"{self._store.path}:{version.id}"

    def _plan(self, rows: pd.DataFrame, version: JudgeVersion) -> _PlannedTrial:
        runs = rows["run_seq"].astype(int).tolist()
        tried = self._store.judge_trials.list_tried_runs(version.digest, runs)
        waiting = [seq for seq in runs if seq not in tried]
        trials: list[_Trial] = []
        left_out: Counter[str] = Counter()
        settings_of = cache(partial(self._trial_settings, version))
        brief_of = cache(partial(self._largest_brief, version))
        unpriced: set[str] = set()
        cost = CostEstimate()
        for audit in self._store.judge_trials.stored_audits(waiting[:MOST_TRIED]):
            try:
                settings = settings_of(audit.settings)
                case = self._store.cases.get(audit.case_id)
            except MasisError as error:
                left_out[str(error)] += 1
                continue
            trials.append(_Trial(audit.run_id, case, settings))
            cost = cost.plus(estimate(case, settings, brief_of(audit.settings)))
            unpriced.update(unpriced_models(settings))
        return _PlannedTrial(
            TrialPlan(
                cases=len(rows),
                tried=len(tried),
                to_audit=len(trials),
                left_out=dict(left_out),
                cost=cost,
                unpriced=tuple(sorted(unpriced)),
            ),
            trials,
        )

    def _largest_brief(self, version: JudgeVersion, stored_settings: str) -> JudgeBrief | None:
        """Return a brief with as many and as long examples as a case may get, for estimates.

        Finding the examples of each case would take seconds before the cost is shown.
        """
        return self._briefs.longest(self._trial_settings(version, stored_settings))

    def _trial_settings(self, version: JudgeVersion, stored_settings: str) -> Settings:
        """Return the settings of a stored audit with another judge, and today's keys.

        Raises:
            InputError: Its replies came from a file, so that a model can't be asked anything new.

        """
        stored = self._settings.with_values(json.loads(stored_settings))
        if any(stored.model_refs()[role].is_replay for role in ROLES):
            raise InputError(
                "was audited with recorded replies, which have none for other instructions",
                hint="Audit the case with a model or offline first, and decide it again.",
                field="case",
            )
        return self._briefs.pin(stored.model_copy(update={"judge": version.pinned}))

    def _try_case(
        self, version: JudgeVersion, trial: _Trial, by: str, cancelled: Callable[[], bool]
    ) -> None:
        """Audit a case with a version, and store what it found beside the stored audit."""
        case, settings = trial.case, trial.settings
        replies = self._store.replies_of(case.id) if settings.cache else None
        roles = build_roles(settings, replies, judge=self._briefs.brief(case, settings))
        work = loop.audit(
            case,
            roles,
            settings,
            run_id=loop.new_run_id(),
            case_digest=case.digest(),
            cancelled=cancelled,
        )
        run = run_to_completion(work, None, AuditStart(case))
        if run.original is None or run.incomplete or run.termination_reason == "cancelled":
            warnings = [warning.message for warning in run.warnings]
            raise StepError(warnings[0] if warnings else "The audit has no result.")
        columns, before = figures(run), self._store.runs.get(trial.run_id)
        self._store.judge_trials.add_outcome(
            TrialOutcome(
                case_id=case.id,
                run_id=before.id,
                digest=version.digest,
                judge=version.name,
                verdict=audit_verdict(columns["flags"], columns["tier"]),
                before=before.judge.name if before.judge else "",
                issues=run.original.issues,
                rulings=run.original.critique.rulings,
                same_prompts=_judged_by(before) == _judged_by(run),
                usage=run.usage,
                by=by,
                at=self._store.database.now(),
            )
        )

    # Comparing

    @requires("read")
    def compare(self, actor: Actor, version: JudgeVersion) -> JudgeComparison:
        """Compare the stored audits and the trial of a version on the held-out cases.

        Raises:
            InputError: The version holds out no questions.

        """
        rows = self._held_out_rows(actor, version)
        runs = rows["run_seq"].astype(int).tolist()
        outcomes = self._store.judge_trials.outcomes(version.digest, runs)
        rows_tried = rows[rows["run_seq"].isin(list(outcomes))]
        verdicts = [outcomes[int(seq)].verdict for seq in rows_tried["run_seq"]]
        after = rows_tried.assign(found=verdicts)
        faulty = rows_tried["faulty"].to_numpy(dtype=bool)
        agreed = is_flagged(rows_tried["found"]) == faulty
        agrees = is_flagged(after["found"]) == faulty
        paired = compare_shares(
            int((agrees & agreed).sum()),
            int((agrees & ~agreed).sum()),
            int((agreed & ~agrees).sum()),
            int((~agrees & ~agreed).sum()),
        )
        changed = rows_tried[(rows_tried["found"] != after["found"]).to_numpy()]
        answers = self._store.judge_trials.audited_answers(
            changed["run_seq"].astype(int).tolist(), changed["entry"].astype(int).tolist()
        )
        changes = [
            _changed_verdict(
                answers[int(row["run_seq"])],
                row["found"],
                outcomes[int(row["run_seq"])],
                bool(row["faulty"]),
            )
            for row in changed.to_dict("records")
            if int(row["run_seq"]) in answers
        ]
        return JudgeComparison(
            version=version.name,
            digest=version.digest,
            cases=len(rows),
            tried=len(rows_tried),
            before=judge_figures(rows_tried),
            after=judge_figures(after),
            gained=paired.first_only,
            lost=paired.second_only,
            difference=paired.difference,
            p=paired.p_exact,
            changes=tuple(
                sorted(
                    changes, key=lambda change: (not change.flips, change.right_now, change.case_id)
                )
            ),
            before_judges=dict(Counter(outcome.before for outcome in outcomes.values())),
            other_prompts=sum(not outcome.same_prompts for outcome in outcomes.values()),
        )

    # Rows

    def _rows(self, actor: Actor, filters: DecidedFilter) -> pd.DataFrame:
        """Return the decided cases that match, with ``question_id`` and clusters by question."""
        rows = self._trust.decided_rows(actor, _trust_filter(filters))
        cases = rows["case_id"].tolist()
        records = self._store.systems.question_records(cases)
        ids = [question_id(records[case]) for case in cases]
        return rows.assign(question_id=ids, cluster=codes(ids) if ids else [])

    def _held_out_rows(self, actor: Actor, version: JudgeVersion) -> pd.DataFrame:
        """Return the decided cases that measure a version, in an order that is random but fixed."""
        held_out = frozenset(version.content.held_out)
        if not held_out:
            raise InputError(
                f"the version {version.name!r} holds out no questions, so nothing measures it",
                hint="Choose decided cases first, and make the version from them.",
                field="version",
            )
        newest = self._store.judge_trials.split()
        is_its_own = newest is not None and frozenset(newest.held_out) == held_out
        filters = newest.filters if newest is not None and is_its_own else DecidedFilter()
        rows = self._rows(actor, filters)
        rows = rows[rows["question_id"].isin(held_out)]
        return rows.sort_values(["question_id", "case_id"])


class _PlannedTrial(NamedTuple):
    plan: TrialPlan
    trials: list[_Trial]


def _encode(patterns: Sequence[PatternText]) -> Floats:
    encoder = load_encoder()
    return np.stack([np.asarray(encoder.encode(pattern.text), np.float32) for pattern in patterns])


def _trust_filter(filters: DecidedFilter) -> TrustFilter:
    return TrustFilter(source="decision", **filters.model_dump())


def _in_half(rows: pd.DataFrame, split: DecidedSplit, half: Half | None) -> pd.Series[bool]:
    held_out = rows["question_id"].isin(split.held_out)
    if half is None:
        return held_out | ~held_out
    return held_out if half == "held_out" else ~held_out


def _aligned_case(answer: AuditedAnswer, verdict: str, faulty: bool) -> AlignedCase:
    return AlignedCase(
        case_id=answer.case_id,
        question=answer.query,
        verdict=verdict,
        faulty=faulty,
        reason=answer.reason or answer.note,
        issues=tuple(issue for issue in answer.iteration.issues if issue.major),
    )


def _changed_verdict(
    answer: AuditedAnswer, before: str, outcome: TrialOutcome, faulty: bool
) -> ChangedVerdict:
    earlier = {_identity(issue): issue for issue in answer.iteration.issues if issue.major}
    now = {_identity(issue): issue for issue in outcome.issues if issue.major}
    was_flagged, flagged = (word == AUDIT_VERDICTS[0] for word in (before, outcome.verdict))
    rules = [ruling.rule or SEVERITY_TABLE for ruling in outcome.rulings]
    rules += [
        issue.rule.removeprefix(HOUSE_RULE)
        for issue in outcome.issues
        if issue.rule.startswith(HOUSE_RULE)
    ]
    return ChangedVerdict(
        case_id=answer.case_id,
        question=answer.query,
        before=before,
        after=outcome.verdict,
        faulty=faulty,
        flips=was_flagged != flagged,
        right_now=flagged == faulty,
        rules=tuple(dict.fromkeys(rules)),
        gained=tuple(issue for key, issue in now.items() if key not in earlier),
        lost=tuple(issue for key, issue in earlier.items() if key not in now),
    )


def _identity(issue: Issue) -> tuple[str, str, str]:
    """Return what makes two issues of different audits the same."""
    return issue.rule, issue.type, issue.quote or issue.description


def _judged_by(run: Run) -> tuple[dict[str, str], str, str | None, dict[str, str]]:
    """Return an audit's models, rules and prompts, without house rules."""
    # The version of the house instructions follows that of the critic's prompt after a space.
    prompts = {role: prompt.partition(" ")[0] for role, prompt in run.versions.prompts.items()}
    return run.models, run.versions.rubric, run.versions.offline_rules, prompts
