"""Compare systems over the questions that they share, question by question."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, TypeAlias

from masis.errors import InputError
from masis.schema.actor import Actor
from masis.schema.case import Case, Severity
from masis.schema.causes import CAUSES
from masis.schema.codebook import Codebook
from masis.schema.comparison import (
    DECIDED,
    GROUPS,
    LIST_NAMES,
    MEASURES,
    WRONG,
    AnswerPair,
    AuditAccuracy,
    Conclusion,
    GroupDifference,
    GroupName,
    ListName,
    MeasuredDifference,
    MeasureName,
    PairedDifference,
    QuestionsNeeded,
    SystemComparison,
    VerdictBasis,
)
from masis.schema.review import LogEntry
from masis.schema.run import Run
from masis.schema.systems import System
from masis.services.access import OPEN, Access, requires
from masis.services.cases import CaseService
from masis.services.decision_rules import REASONS
from masis.store import Store
from masis.store.audits.systems import StoredAnswer
from masis.trust.paired import (
    LEAST_QUESTIONS,
    bootstrap_difference,
    compare_shares,
    questions_needed,
)

LEVEL = 0.05
"""A difference of shares with a smaller p-value counts as shown."""

MOST_LISTED = 200
"""The most regressions and improvements that a comparison lists; the counts are of all."""

MOST_SYSTEMS = 8
"""The most systems that one comparison takes."""

POINTS_TO_SHOW = (5, 10)
"""The differences, in points, for which a comparison says how many questions would show them."""

CauseSource: TypeAlias = Literal["people", "audit"]
"""Whose causes differences are broken down by."""

_LIST_BY_WRONG: dict[tuple[bool | None, bool | None], ListName] = {
    (False, True): "worse",
    (True, False): "better",
    (True, True): "both_wrong",
    (False, False): "both_right",
}

_SEVERITY_ORDER: dict[Severity | None, int] = {
    "critical": 0,
    "high": 1,
    "medium": 2,
    "low": 3,
    None: 4,
}


_Key: TypeAlias = tuple[tuple[System, ...], str, bool, int | None]
"""What a comparison was asked for: the systems, the viewer, whether with groups, and how many
questions it lists.
"""

_MOST_KEPT = 32
"""The comparisons that are kept until something changes."""


class _Pair(NamedTuple):
    first: StoredAnswer
    second: StoredAnswer


_ValuesOf: TypeAlias = dict[int, frozenset[str]]
"""What people or the audit said about answers, by the number of the case."""


class ComparedAnswer(NamedTuple):
    """One answer of a pair, with the newest audit and the decision in force, as far as the viewer
    may see them.
    """

    case: Case
    run: Run | None
    decision: LogEntry | None


class ComparisonService:
    """The use cases of comparing systems."""

    def __init__(self, store: Store, access: Access = OPEN) -> None:
        self._store, self.access = store, access
        self._cases = CaseService(store, access)
        self._compared: dict[_Key, tuple[tuple[object, ...], tuple[SystemComparison, ...]]] = {}

    @requires("read")
    def compare(
        self,
        actor: Actor,
        names: Sequence[str],
        *,
        groups: bool = True,
        most_listed: int | None = MOST_LISTED,
    ) -> tuple[SystemComparison, ...]:
        """Compare the first system with each of the others, over the questions that all share.

        What a policy hides from this person is left out, as if the answer hadn't been audited.

        Args:
            actor: Who asks.
            names: Two systems or more, the one to compare with first.
            groups: Whether flagged answers are also compared by field, failure mode and cause.
            most_listed: The most questions of each list; None for all.

        Raises:
            InputError: There are fewer than two systems, too many, or one twice.
            UnknownRecord: A system has no answers here.

        """
        if not 2 <= len(names) <= MOST_SYSTEMS or len(set(names)) < len(names):
            raise InputError(
                f"names {len(names)} systems",
                hint=f"Name 2 to {MOST_SYSTEMS} different systems, such as: v1 v2.",
                field="systems",
            )
        systems = tuple(self._store.systems.get(name) for name in names)
        if groups:
            self._store.modes.catch_up()
        key = (systems, actor.name, groups, most_listed)
        stamp = self._store.systems.stamp(names)
        if (known := self._compared.get(key)) is not None and known[0] == stamp:
            return known[1]
        result = self._compare(actor, systems, groups=groups, most_listed=most_listed)
        if len(self._compared) >= _MOST_KEPT:
            self._compared.clear()
        self._compared[key] = (stamp, result)
        return result

    def _compare(
        self, actor: Actor, systems: Sequence[System], *, groups: bool, most_listed: int | None
    ) -> tuple[SystemComparison, ...]:
        names = [system.name for system in systems]
        answers: dict[str, dict[int, StoredAnswer]] = {name: {} for name in names}
        for answer in self._store.systems.answers(names, actor.name):
            answers[answer.system][answer.question] = answer
        shared = set.intersection(*(set(held) for held in answers.values()))
        modes: _ValuesOf = {}
        reasons: _ValuesOf = {}
        causes_by: dict[CauseSource, dict[int, frozenset[str]]] = {"people": {}, "audit": {}}
        if groups:
            modes = self._store.systems.modes(names, actor.name)
            reasons = self._store.systems.reasons(names, actor.name)
            for source in causes_by:
                causes_by[source] = self._store.systems.causes(
                    names, actor.name, by_people=source == "people"
                )
        compared = []
        before = answers[names[0]]
        for system in systems[1:]:
            now = answers[system.name]
            pairs = [_Pair(before[question], now[question]) for question in sorted(shared)]
            by_list: dict[ListName, list[_Pair]] = {name: [] for name in LIST_NAMES}
            for pair in pairs:
                if (name := _list_of(pair)) is not None:
                    by_list[name].append(pair)
            lists = {name: self._list(members, most_listed) for name, members in by_list.items()}
            # Labels and reasons are given for a part of the answers, so people's causes and the
            # audit's aren't mixed: their shares would have different bases.
            causes_from: CauseSource = (
                "people"
                if any(answer.seq in causes_by["people"] for pair in pairs for answer in pair)
                else "audit"
            )
            measures = {name: _measure_difference(name, pairs) for name in MEASURES}
            compared.append(
                SystemComparison(
                    first=systems[0],
                    second=system,
                    shared=len(pairs),
                    only_first=len(before) - len(pairs),
                    only_second=len(now) - len(pairs),
                    hidden=sum(pair.first.hidden or pair.second.hidden for pair in pairs),
                    unjudged=sum(
                        None in (pair.first.judgement, pair.second.judgement)
                        and not (pair.first.hidden or pair.second.hidden)
                        for pair in pairs
                    ),
                    measures=tuple(
                        MeasuredDifference(measure=name, **difference.model_dump())
                        for name, difference in measures.items()
                    ),
                    groups=(
                        self._groups(pairs, reasons, modes, causes_by[causes_from])
                        if groups
                        else ()
                    ),
                    regressions=lists["worse"],
                    improvements=lists["better"],
                    both_wrong=lists["both_wrong"],
                    both_right=lists["both_right"],
                    regression_count=len(by_list["worse"]),
                    improvement_count=len(by_list["better"]),
                    both_wrong_count=len(by_list["both_wrong"]),
                    both_right_count=len(by_list["both_right"]),
                    basis=_basis(pairs),
                    audit_accuracy=_audit_accuracy(pairs),
                    needed=_questions_needed(measures["flagged"]),
                    causes_by=causes_from,
                )
            )
        return tuple(compared)

    @requires("read")
    def open_answer(self, actor: Actor, case_id: str) -> ComparedAnswer:
        """Return one answer of a pair with its newest audit, as far as this person may see it.

        Raises:
            UnknownRecord: There is no such case.

        """
        view = self._cases.open_for(actor, case_id)
        entry = view.decision if view.state in DECIDED else None
        return ComparedAnswer(view.case, view.run, entry)

    def _list(self, pairs: Iterable[_Pair], most: int | None) -> tuple[AnswerPair, ...]:
        """Return pairs with the names of their cases, the worst issue of a wrong answer first."""
        listed = sorted(
            pairs, key=lambda pair: (_SEVERITY_ORDER[_severity(pair)], pair.first.question)
        )[:most]
        names = self._store.systems.names_of([answer.seq for pair in listed for answer in pair])
        rows = []
        for first, second in listed:
            assert first.judgement is not None
            assert second.judgement is not None
            rows.append(
                AnswerPair(
                    question=names[first.seq].question_id,
                    query=names[first.seq].query,
                    field=first.field,
                    first=names[first.seq].case_id,
                    second=names[second.seq].case_id,
                    first_judgement=first.judgement,
                    second_judgement=second.judgement,
                    severity=_severity(_Pair(first, second)),
                    first_severity=first.severity,
                    second_severity=second.severity,
                    first_audited=first.flags is not None,
                    second_audited=second.flags is not None,
                )
            )
        return tuple(rows)

    def _groups(
        self,
        pairs: Sequence[_Pair],
        reasons: _ValuesOf,
        modes: _ValuesOf,
        causes: _ValuesOf,
    ) -> tuple[GroupDifference, ...]:
        """Return the differences by reason, field, failure mode and cause, the largest groups
        first.
        """
        judged = [pair for pair in pairs if None not in (pair[0].judgement, pair[1].judgement)]
        fields: dict[str, list[_Pair]] = defaultdict(list)
        for pair in judged:
            if pair.first.field:
                fields[pair.first.field].append(pair)
        rows = [
            _group_difference("field", value, [(_wrong(a), _wrong(b)) for a, b in members])
            for value, members in fields.items()
        ]
        codebook = self._store.team.in_force(Codebook)
        named: _ValuesOf = {
            seq: frozenset(mode.name for code in codes if (mode := codebook.find(code)) is not None)
            for seq, codes in modes.items()
        }
        worded = {
            seq: frozenset(row.name for cause, row in CAUSES.items() if cause in held)
            for seq, held in causes.items()
        }
        given = {
            seq: frozenset(REASONS[code].text for code in codes if code in REASONS)
            for seq, codes in reasons.items()
        }
        kinds: tuple[tuple[GroupName, _ValuesOf], ...] = (
            ("reason", given),
            ("mode", named),
            ("cause", worded),
        )
        none: frozenset[str] = frozenset()
        for kind, values_of in kinds:
            values = {
                value
                for pair in judged
                for answer in pair
                for value in values_of.get(answer.seq, none)
            }
            rows += [
                _group_difference(
                    kind,
                    value,
                    [
                        (
                            value in values_of.get(first.seq, none),
                            value in values_of.get(second.seq, none),
                        )
                        for first, second in judged
                    ],
                )
                for value in values
            ]
        order = {name: place for place, name in enumerate(GROUPS)}
        rows.sort(
            key=lambda row: (
                order[row.group],
                -row.questions * ((row.first or 0) + (row.second or 0)),
                row.value,
            )
        )
        return tuple(rows)


def _is_wrong(answer: StoredAnswer) -> bool | None:
    return None if answer.judgement is None else answer.judgement in WRONG


def _wrong(answer: StoredAnswer) -> bool:
    return answer.judgement in WRONG


def _list_of(pair: _Pair) -> ListName | None:
    """Return the list of a pair, or None if an answer isn't judged."""
    wrong = _is_wrong(pair.first), _is_wrong(pair.second)
    if None in wrong:
        return None
    return _LIST_BY_WRONG[wrong]


def _severity(pair: _Pair) -> Severity | None:
    """Return the severity of the worst issue in the wrong answers, or in either if none is."""
    answers = [answer for answer in pair if _wrong(answer)] or list(pair)
    return min((answer.severity for answer in answers), key=_SEVERITY_ORDER.__getitem__)


def _basis(pairs: Iterable[_Pair]) -> VerdictBasis:
    judged = [pair for pair in pairs if None not in (pair.first.judgement, pair.second.judgement)]
    decided = [answer for pair in judged for answer in pair if answer.judgement in DECIDED]
    by_people = sum(all(answer.judgement in DECIDED for answer in pair) for pair in judged)
    return VerdictBasis(
        decided=by_people,
        by_audit=len(judged) - by_people,
        reviewers=len({answer.reviewer for answer in decided}),
        answers=len(decided),
        blind=sum(answer.blind is not None and bool(answer.blind) for answer in decided),
    )


def _audit_accuracy(pairs: Iterable[_Pair]) -> AuditAccuracy:
    both = [
        answer
        for pair in pairs
        for answer in pair
        if answer.judgement in DECIDED and answer.flagged is not None
    ]
    wrong = [answer for answer in both if _wrong(answer)]
    right = [answer for answer in both if not _wrong(answer)]
    return AuditAccuracy(
        wrong=len(wrong),
        wrong_flagged=sum(bool(answer.flagged) for answer in wrong),
        right=len(right),
        right_flagged=sum(bool(answer.flagged) for answer in right),
    )


def _questions_needed(flagged: PairedDifference) -> tuple[QuestionsNeeded, ...]:
    if not flagged.questions:
        return ()
    differing = ((flagged.only_first or 0) + (flagged.only_second or 0)) / flagged.questions
    return tuple(
        QuestionsNeeded(points=points, questions=needed)
        for points in POINTS_TO_SHOW
        if (needed := questions_needed(points / 100, differing)) is not None
    )


def _measure_difference(name: MeasureName, pairs: Iterable[_Pair]) -> PairedDifference:
    measure = MEASURES[name]
    if measure.unit == "share":
        flag = f'"{measure.flag}"'
        known = (
            [(_is_wrong(first), _is_wrong(second)) for first, second in pairs]
            if not measure.flag
            else [
                (
                    None if first.flags is None else flag in first.flags,
                    None if second.flags is None else flag in second.flags,
                )
                for first, second in pairs
            ]
        )
        return _compare_shares([(a, b) for a, b in known if a is not None and b is not None])
    amounts = [
        (float(first.length), float(second.length))
        if name == "length" and first.length is not None and second.length is not None
        else (first.cost, second.cost)
        if name == "cost"
        else (None, None)
        for first, second in pairs
    ]
    known_amounts = [(a, b) for a, b in amounts if a is not None and b is not None]
    return _compare_means(known_amounts, lower_is_better=measure.lower_is_better)


def _group_difference(
    group: GroupName, value: str, pairs: Sequence[tuple[bool, bool]]
) -> GroupDifference:
    return GroupDifference(group=group, value=value, **_compare_shares(pairs).model_dump())


def _compare_shares(pairs: Sequence[tuple[bool, bool]]) -> PairedDifference:
    """Compare two shares; all shares of ``MEASURES`` are of faults, so that less is better."""
    if not pairs:
        return PairedDifference(questions=0)
    count = len(pairs)
    counts = Counter(pairs)
    both, only_first, only_second = counts[True, True], counts[True, False], counts[False, True]
    # The second system comes first here, because a difference is its share less the other's.
    compared = compare_shares(
        both, only_second, only_first, count - both - only_first - only_second
    )
    conclusion: Conclusion = "no_difference"
    if compared.is_too_few_to_tell:
        conclusion = "too_few"
    elif compared.p_exact < LEVEL:
        conclusion = "better" if only_first > only_second else "worse"
    return PairedDifference(
        questions=count,
        first=(both + only_first) / count,
        second=(both + only_second) / count,
        only_first=only_first,
        only_second=only_second,
        difference=compared.difference.value,
        low=compared.difference.low,
        high=compared.difference.high,
        p=compared.p_exact,
        conclusion=conclusion,
    )


def _compare_means(
    pairs: Sequence[tuple[float, float]], *, lower_is_better: bool | None
) -> PairedDifference:
    if not pairs:
        return PairedDifference(questions=0)
    first, second = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    interval = bootstrap_difference(second, first)
    conclusion: Conclusion = "too_few"
    if interval.value == 0 and interval.n >= LEAST_QUESTIONS:
        conclusion = "no_difference"
    elif interval.low is not None and interval.high is not None:
        conclusion = "no_difference"
        if not interval.low <= 0 <= interval.high and lower_is_better is not None:
            conclusion = "better" if (interval.high < 0) == lower_is_better else "worse"
    return PairedDifference(
        questions=len(pairs),
        first=sum(first) / len(pairs),
        second=sum(second) / len(pairs),
        difference=interval.value,
        low=interval.low,
        high=interval.high,
        conclusion=conclusion,
    )
