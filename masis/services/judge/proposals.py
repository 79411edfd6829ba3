"""Proposes house rules from decisions that overruled the audit. All functions are pure.

Issues of one type with similar descriptions are a kind of flag. Three decisions against the same
kind give a proposal, and so do three faults of one kind that the audit missed. Faults that every
audit looks for, such as a contradicted claim, give none: a house rule would only repeat the audit's
task. The sentence is the reviewers' own, and a person edits it before it becomes a rule.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from masis.audit.acceptance import flagged_reasons
from masis.schema.audit import Issue
from masis.schema.base import Record
from masis.schema.case import Severity
from masis.schema.judge import Force, HouseRule, RuleExample, rule_id_from
from masis.schema.labels import LABEL_CHOICES, TargetLabel, is_fault
from masis.schema.review import Decision
from masis.schema.rules import IssueType
from masis.schema.run import Iteration
from masis.schema.team import DEFAULT_LABEL_TYPES
from masis.schema.wording import shorten
from masis.services.decision_rules import OTHER, REASON_CODE, REASONS
from masis.services.modes.concepts import Floats
from masis.services.modes.grouping import PatternText, group_patterns

LEAST_OVERRULED = 3
"""The minimum number of cases with one kind of flag for a rule to be proposed."""

MOST_EXAMPLES_PROPOSED = 3
MOST_REASONS = 5
_SENTENCE, _SHORT = 300, 150
"""The longest proposed sentence, and the longest quoted issue in one, in characters."""

ProposalKind = Literal["overruled", "missed"]
"""Why a rule is proposed."""


class ProposalKindRow(NamedTuple):
    """A kind of proposal: its words, the force of its rule, and the sentence without reasons."""

    words: str
    meaning: str
    force: Force
    sentence: str


PROPOSAL_KINDS: dict[ProposalKind, ProposalKindRow] = {
    "overruled": ProposalKindRow(
        "Overruled flags",
        "The audit flagged these answers, and people found them right",
        "does_not_matter",
        "Issues like “{}” don't matter.",
    ),
    "missed": ProposalKindRow(
        "Missed faults",
        "The audit didn't flag these answers, and people found them faulty",
        "must_not",
        "An answer must not have this fault: “{}”.",
    ),
}
"""The kinds of proposals."""


class OverruledFlag(NamedTuple):
    """Something on which people and the audit differ in one case.

    Attributes:
        kind: Whether people overruled the issue, or found a fault that the audit missed.
        text: The issue's description, or the fault in the reviewer's words.
        type: The issue's type; None for a missed fault.
        reason: The reviewer's own words; empty if there are none.
        severity: The severity that people gave a missed fault.
        named: The listed reason or the label type that names a missed fault; "" if only the
            reviewer's own words do.

    """

    kind: ProposalKind
    case_id: str
    text: str
    type: IssueType | None
    reason: str
    severity: Severity = "high"
    named: str = ""


class ProposalEffect(Record):
    """What a proposed rule would have changed among the shown cases.

    Attributes:
        corrected: Cases that would then have people's verdict.
        spoiled: Cases that would then have another verdict than people's.
        unknown: Whether the rule may also change other cases, which only a trial can tell.

    """

    corrected: tuple[str, ...]
    spoiled: tuple[str, ...]
    unknown: bool


class RuleProposal(Record):
    """A house rule that decisions suggest.

    Attributes:
        id: Stays the same while the same cases suggest it.
        name: The words that distinguish this kind of flag.
        cases: The decided cases that suggest it, newest first.
        reasons: The reviewers' reasons with their numbers, most frequent first.
        rule: The drafted rule.

    """

    id: str
    kind: ProposalKind
    name: str
    cases: tuple[str, ...]
    typical: str
    reasons: tuple[tuple[str, int], ...]
    rule: HouseRule
    effect: ProposalEffect


class SeenCase(NamedTuple):
    """A decided case of the first half: its audited answer, and the verdicts on it."""

    case_id: str
    iteration: Iteration
    flagged: bool
    faulty: bool


def overruled_flags(case: SeenCase, decision: Decision) -> list[OverruledFlag]:
    """Return everything on which the deciding person and the audit differ in a case.

    A person overrules the critic's serious issues by finding the answer right, and one of them by
    labelling its words as correct. House rules can't overrule safety issues, nor what citations
    and claims show.
    """
    reason = own_words(decision)
    flags: list[OverruledFlag] = []
    for issue in case.iteration.issues:
        if issue.source != "critic" or not issue.major or issue.type == "safety":
            continue
        label = next((label for label in decision.labels if _accepts(label, issue)), None)
        if label is not None or (case.flagged and not case.faulty):
            why = (label.note if label else "") or reason
            flags.append(
                OverruledFlag("overruled", case.case_id, issue.description, issue.type, why)
            )
    if case.faulty and not case.flagged:
        faults = [label for label in decision.labels if is_fault(label)]
        flags += [
            OverruledFlag(
                "missed",
                case.case_id,
                label.note or label.label,
                None,
                label.note or reason,
                label.severity or "high",
                "" if label.label == _OTHER_TYPE else label.label,
            )
            for label in faults
            if label.label not in _FOUND_BY_AUDITS
        ]
        code = decision.extra.get(REASON_CODE, OTHER)
        is_listed = code in REASONS and code != OTHER
        if not faults and decision.reason.strip() and not (is_listed and REASONS[code].rules):
            named = code if is_listed else ""
            flags.append(
                OverruledFlag("missed", case.case_id, decision.reason, None, reason, named=named)
            )
    return flags


_OTHER_TYPE = "other"
_FOUND_BY_AUDITS = frozenset(
    {
        *(label for choices in LABEL_CHOICES.values() for label in choices),
        *(type_.name for type_ in DEFAULT_LABEL_TYPES if type_.name != _OTHER_TYPE),
    }
)
"""Labels for what every audit looks for. A team's own label types aren't among them."""


def own_words(decision: Decision) -> str:
    """Return a reviewer's own reason, or their note if the reason is one of the listed ones."""
    code = decision.extra.get(REASON_CODE)
    is_listed = code in REASONS and code != OTHER
    return " ".join((decision.note if is_listed else decision.reason).split())


def _accepts(label: TargetLabel, issue: Issue) -> bool:
    """Return whether a label says that the words of an issue are right."""
    if label.label not in ACCEPTING or None in (label.start, label.end, issue.start, issue.end):
        return False
    start, end = label.start or 0, label.end or 0
    return start < (issue.end or 0) and (issue.start or 0) < end


ACCEPTING = frozenset({"supported", "valid", "exempt"})
"""The labels that say words of an answer are right."""


def propose_rules(
    flags: Sequence[OverruledFlag],
    cases: Sequence[SeenCase],
    encode: Callable[[Sequence[PatternText]], Floats],
    pattern_of: Callable[[str], str],
) -> tuple[RuleProposal, ...]:
    """Return the rules that decisions suggest, those with the most cases first.

    Args:
        flags: Everything on which people and the audit differ, newest first.
        cases: All cases that a rule could have changed.
        encode: Returns a vector for each text.
        pattern_of: Returns the words of a text by which equal texts count as one.

    """
    by_kind: dict[tuple[ProposalKind, IssueType | None, str], list[OverruledFlag]] = defaultdict(
        list
    )
    for flag in flags:
        by_kind[flag.kind, flag.type, flag.named].append(flag)
    proposals: list[RuleProposal] = []
    for (kind, type_, _), same_kind in by_kind.items():
        by_pattern: dict[str, list[OverruledFlag]] = defaultdict(list)
        for flag in same_kind:
            by_pattern[pattern_of(flag.text)].append(flag)
        order = sorted(by_pattern, key=lambda pattern: (-len(by_pattern[pattern]), pattern))
        texts = [
            PatternText(number, pattern, len(by_pattern[pattern]))
            for number, pattern in enumerate(order)
        ]
        for group in group_patterns(texts, encode):
            patterns = frozenset(order[number] for number in group.patterns)
            members = [flag for flag in same_kind if pattern_of(flag.text) in patterns]
            if len({flag.case_id for flag in members}) < LEAST_OVERRULED:
                continue
            effect = (
                _effect_of_dropping(type_, patterns, cases, pattern_of)
                if kind == "overruled"
                else ProposalEffect(corrected=_distinct_cases(members), spoiled=(), unknown=True)
            )
            proposals.append(_proposal(kind, type_, group.heading, members, effect))
    return tuple(sorted(proposals, key=lambda proposal: (-len(proposal.cases), proposal.id)))


def _proposal(
    kind: ProposalKind,
    type_: IssueType | None,
    name: str,
    members: Sequence[OverruledFlag],
    effect: ProposalEffect,
) -> RuleProposal:
    row, ids = PROPOSAL_KINDS[kind], _distinct_cases(members)
    reasons = Counter(flag.reason for flag in members if flag.reason).most_common()
    typical = members[0].text
    sentence = (
        _end_sentence(reasons[0][0]) if reasons else row.sentence.format(shorten(typical, 150))
    )
    severities = Counter(flag.severity for flag in members)
    rule = HouseRule(
        id=rule_id_from(sentence),
        sentence=sentence,
        force=row.force,
        severity=None if kind == "overruled" else severities.most_common(1)[0][0],
        issue_types=(type_,) if type_ is not None else (),
        examples=tuple(
            RuleExample(case_id=case_id, breaks=kind == "missed")
            for case_id in ids[:MOST_EXAMPLES_PROPOSED]
        ),
    )
    return RuleProposal(
        id=f"{kind}-{type_ or 'fault'}-{rule.id}",
        kind=kind,
        name=name,
        cases=ids,
        typical=typical,
        reasons=tuple(reasons[:MOST_REASONS]),
        rule=rule,
        effect=effect,
    )


def _distinct_cases(flags: Sequence[OverruledFlag]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(flag.case_id for flag in flags))


def _effect_of_dropping(
    type_: IssueType | None,
    patterns: frozenset[str],
    cases: Sequence[SeenCase],
    pattern_of: Callable[[str], str],
) -> ProposalEffect:
    """Return which flagged cases wouldn't be flagged without the critic's issues of one kind."""

    def is_meant(issue: Issue) -> bool:
        return (
            issue.source == "critic"
            and issue.type == type_
            and pattern_of(issue.description) in patterns
        )

    corrected: list[str] = []
    spoiled: list[str] = []
    for case in cases:
        remaining = tuple(issue for issue in case.iteration.issues if not is_meant(issue))
        if not case.flagged or len(remaining) == len(case.iteration.issues):
            continue
        without = case.iteration.model_copy(update={"issues": remaining})
        if not flagged_reasons(without):
            (spoiled if case.faulty else corrected).append(case.case_id)
    return ProposalEffect(corrected=tuple(corrected), spoiled=tuple(spoiled), unknown=False)


def _end_sentence(reason: str) -> str:
    sentence = shorten(" ".join(reason.split()), _SENTENCE)
    return sentence if sentence.endswith((".", "!", "?", "…")) else f"{sentence}."
