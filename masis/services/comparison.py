"""Compare systems over the questions that they share, question by question."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeAlias

from masis.errors import InputError
from masis.schema.actor import Actor
from masis.schema.case import Case
from masis.schema.causes import CAUSES
from masis.schema.codebook import Codebook
from masis.schema.comparison import (
    MEASURES,
    WRONG,
    AnswerPair,
    Conclusion,
    GroupDifference,
    GroupName,
    MeasuredDifference,
    MeasureName,
    PairedDifference,
    SystemComparison,
)
from masis.schema.run import Run
from masis.schema.systems import System
from masis.services.access import OPEN, Access, requires
from masis.services.cases import CaseService
from masis.store import Store
from masis.store.audits.systems import StoredAnswer
from masis.trust.paired import LEAST_QUESTIONS, bootstrap_difference, compare_shares

LEVEL = 0.05
"""A difference of shares with a smaller p-value counts as shown."""

MOST_LISTED = 200
"""The most regressions and improvements that a comparison lists; the counts are of all."""

MOST_SYSTEMS = 8
"""The most systems that one comparison takes."""

_SEVERITY_ORDER = {"critical": 0, "high": 1, "medium": 2, "low": 3, None: 4}


_Key: TypeAlias = tuple[tuple[System, ...], str, bool]
"""What a comparison was asked for: the systems, the viewer, and whether with groups."""

_MOST_KEPT = 32
"""The comparisons that are kept until something changes."""


class _Pair(NamedTuple):
    first: StoredAnswer
    second: StoredAnswer


class ComparedAnswer(NamedTuple):
    """One answer of a pair, with the newest audit as far as the viewer may see it."""

    case: Case
    run: Run | None


class ComparisonService:
    """The use cases of comparing systems."""

    def __init__(self, store: Store, access: Access = OPEN) -> None:
        self._store, self.access = store, access
        self._cases = CaseService(store, access)
        self._compared: dict[_Key, tuple[tuple[object, ...], tuple[SystemComparison, ...]]] = {}

    @requires("read")
    def compare(
        self, actor: Actor, names: Sequence[str], *, groups: bool = True
    ) -> tuple[SystemComparison, ...]:
        """Compare the first system with each of the others, over the questions that all share.

        What a policy hides from this person is left out, as if the answer hadn't been audited.

        Args:
            actor: Who asks.
            names: Two systems or more, the one to compare with first.
            groups: Whether flagged answers are also compared by field, failure mode and cause.

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
        key = (systems, actor.name, groups)
        stamp = self._store.systems.stamp(names)
        if (known := self._compared.get(key)) is not None and known[0] == stamp:
            return known[1]
        result = self._compare(actor, systems, groups=groups)
        if len(self._compared) >= _MOST_KEPT:
            self._compared.clear()
        self._compared[key] = (stamp, result)
        return result

    def _compare(
        self, actor: Actor, systems: Sequence[System], *, groups: bool
    ) -> tuple[SystemComparison, ...]:
        names = [system.name for system in systems]
        answers: dict[str, dict[int, StoredAnswer]] = {name: {} for name in names}
        for answer in self._store.systems.answers(names, actor.name):
            answers[answer.system][answer.question] = answer
        shared = set.intersection(*(set(held) for held in answers.values()))
        modes, causes = {}, {}
        if groups:
            modes = self._store.systems.modes(names, actor.name)
            causes = self._store.systems.causes(names, actor.name)
        compared = []
        before = answers[names[0]]
        for system in systems[1:]:
            now = answers[system.name]
            pairs = [_Pair(before[question], now[question]) for question in sorted(shared)]
            worse = [pair for pair in pairs if _is_wrong(pair[0]) is False and _wrong(pair[1])]
            better = [pair for pair in pairs if _wrong(pair[0]) and _is_wrong(pair[1]) is False]
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
                        MeasuredDifference(
                            measure=name, **_measure_difference(name, pairs).model_dump()
                        )
                        for name in MEASURES
                    ),
                    groups=self._groups(pairs, modes, causes) if groups else (),
                    regressions=self._list(worse, lambda pair: pair.second),
                    improvements=self._list(better, lambda pair: pair.first),
                    regression_count=len(worse),
                    improvement_count=len(better),
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
        return ComparedAnswer(view.case, view.run)

    def _list(
        self, pairs: Iterable[_Pair], faulty: Callable[[_Pair], StoredAnswer]
    ) -> tuple[AnswerPair, ...]:
        """Return pairs with the names of their cases, the worst faulty answer first."""
        listed = sorted(
            pairs, key=lambda pair: (_SEVERITY_ORDER[faulty(pair).severity], pair.first.question)
        )[:MOST_LISTED]
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
                    severity=faulty(_Pair(first, second)).severity,
                )
            )
        return tuple(rows)

    def _groups(
        self,
        pairs: Sequence[_Pair],
        modes: dict[int, frozenset[str]],
        causes: dict[int, frozenset[str]],
    ) -> tuple[GroupDifference, ...]:
        """Return the differences by field, failure mode and cause, the largest groups first."""
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
        named: dict[int, frozenset[str]] = {
            seq: frozenset(mode.name for code in codes if (mode := codebook.find(code)) is not None)
            for seq, codes in modes.items()
        }
        worded = {
            seq: frozenset(row.name for cause, row in CAUSES.items() if cause in held)
            for seq, held in causes.items()
        }
        kinds: tuple[tuple[GroupName, dict[int, frozenset[str]]], ...] = (
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
        order = {name: place for place, name in enumerate(("field", "mode", "cause"))}
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
