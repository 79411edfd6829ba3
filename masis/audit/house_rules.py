"""House rules in an audit: the checks without a model, and what rules do to the critic's issues.

A model critic names the house rule of each of its issues. What follows from it is decided here, in
code, so that each dropped, lowered or raised issue is on record with its rule (``HouseRuling``),
and a rule changes only what it may change (``HouseRule.may_lower``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from masis.audit.critique import CritiqueJudgement, RawIssue
from masis.audit.issues import raise_issues
from masis.errors import InputError
from masis.schema.audit import CitationAudit, Issue
from masis.schema.case import Case, Severity
from masis.schema.judge import (
    CheckKind,
    CodeCheck,
    HouseRule,
    HouseRuling,
    JudgeContent,
    SeverityRule,
)
from masis.schema.rules import IssueType
from masis.schema.wording import count_noun

HOUSE_RULE = "house_"
"""The beginning of the rules of issues that break a house rule: ``house_price-currency``."""

MOST_MATCHES = 20
"""Maximum number of issues per check. More wouldn't help a reviewer."""

SEVERITIES: tuple[Severity, ...] = ("low", "medium", "high", "critical")

# Private-use characters that mark the matches in a text. They are first removed from the text.
_OPEN, _CLOSE, _NEITHER = "\ue000", "\ue001", "\ufffd"
_MARKS = str.maketrans({_OPEN: _NEITHER, _CLOSE: _NEITHER})


class _Violation(NamedTuple):
    """One violation. ``quote`` is the text in the answer, or None if it's the whole answer."""

    description: str
    quote: str | None = None


class PatternMatch(NamedTuple):
    """The offsets of a match in a text."""

    start: int
    end: int


def assert_pattern(pattern: str) -> None:
    """Check that a pattern is a regular expression of RE2.

    Raises:
        InputError: It isn't.

    """
    find_matches(pattern, "")


def find_matches(pattern: str, text: str) -> list[PatternMatch]:
    """Return the matches of a pattern that aren't empty, in order.

    RE2 matches in time that is linear in the text, so no pattern and no answer can hold up an
    audit. pyarrow bundles RE2.

    Raises:
        InputError: The pattern isn't a regular expression of RE2.

    """
    # Imported here, because it takes a tenth of a second and few rules have a pattern.
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        # The pattern alone first: in a group, "a)(b" would be valid.
        pc.match_substring_regex(pa.scalar(""), pattern=pattern)
        marked = pc.replace_substring_regex(
            pa.scalar(text.translate(_MARKS)),
            pattern=f"({pattern})",
            replacement=f"{_OPEN}\\1{_CLOSE}",
        ).as_py()
    except pa.ArrowInvalid as error:
        raise InputError(
            f"isn't a supported regular expression: {error}",
            hint="Patterns have no lookaround and no backreferences (github.com/google/re2).",
            field="pattern",
        ) from error
    matches: list[PatternMatch] = []
    start = position = 0
    for part in re.split(f"([{_OPEN}{_CLOSE}])", marked):
        if part == _OPEN:
            start = position
        elif part == _CLOSE:
            if position > start:
                matches.append(PatternMatch(start, position))
        else:
            position += len(part)
    return matches


def check_house_rules(
    content: JudgeContent,
    case: Case,
    answer: str,
    audit: CitationAudit,
    earlier_issues: Sequence[Issue],
) -> tuple[Issue, ...]:
    """Return the issues of all rules that code can check, numbered after the earlier ones."""
    issues: list[Issue] = []
    for rule in content.rules:
        if rule.check is None or rule.severity is None:
            continue
        violations = list(_CHECKS[rule.check.kind](rule, rule.check, case, answer, audit))
        raw_issues = [
            RawIssue(
                _TYPES[rule.check.kind],
                f"{HOUSE_RULE}{rule.id}",
                rule.severity,
                violation.description,
                reason_of(rule),
                "Change the answer so that it follows the rule.",
                violation.quote,
            )
            for violation in violations[:MOST_MATCHES]
        ]
        issues += raise_issues("checks", raw_issues, answer, [*earlier_issues, *issues]).issues
    return tuple(issues)


def reason_of(rule: HouseRule) -> str:
    """Return the reason of an issue that breaks a rule, which names the rule."""
    return f"House rule {rule.id}: “{rule.sentence}”"


def _check_pattern(
    rule: HouseRule, check: CodeCheck, case: Case, answer: str, audit: CitationAudit
) -> Iterator[_Violation]:
    matches = find_matches(check.text, answer)
    if rule.force == "must":
        if not matches:
            yield _Violation(f"The answer has no text that matches {check.text!r}.")
        return
    for match in matches:
        words = answer[match.start : match.end]
        yield _Violation(f"The answer must not say “{words}”.", words)


def _check_phrase(
    rule: HouseRule, check: CodeCheck, case: Case, answer: str, audit: CitationAudit
) -> Iterator[_Violation]:
    words = r"\s+".join(map(re.escape, check.text.split()))
    # The phrase "ban" isn't in "urban": it begins where a word begins.
    for match in re.finditer(rf"(?<!\w){words}(?!\w)", answer, re.IGNORECASE):
        yield _Violation(f"The answer must not say “{match.group()}”.", match.group())


def _check_length(
    rule: HouseRule, check: CodeCheck, case: Case, answer: str, audit: CitationAudit
) -> Iterator[_Violation]:
    length = len(answer) if check.unit == "characters" else len(answer.split())
    if check.limit is not None and length > check.limit:
        noun = check.unit.removesuffix("s")
        yield _Violation(
            f"The answer has {count_noun(length, noun)}, and at most {check.limit:,} are allowed."
        )


def _check_citation(
    rule: HouseRule, check: CodeCheck, case: Case, answer: str, audit: CitationAudit
) -> Iterator[_Violation]:
    wanted = check.text.strip().casefold()
    chunks = {
        chunk.id
        for chunk in case.evidence
        if not wanted or wanted in (chunk.id.casefold(), (chunk.source or "").casefold())
    }
    cited = {citation.evidence_id for citation in audit.citations}
    if chunks and not chunks & cited:
        name = f"{check.text.strip()!r}" if wanted else "any chunk"
        yield _Violation(f"The answer doesn't cite {name}.")


_CHECKS: dict[
    CheckKind,
    Callable[[HouseRule, CodeCheck, Case, str, CitationAudit], Iterator[_Violation]],
] = {
    "pattern": _check_pattern,
    "required_citation": _check_citation,
    "banned_phrase": _check_phrase,
    "maximal_length": _check_length,
}

_TYPES: dict[CheckKind, IssueType] = {
    "pattern": "ambiguity",
    "required_citation": "missing_info",
    "banned_phrase": "ambiguity",
    "maximal_length": "ambiguity",
}
"""The issue type that each check raises. None of them is about the evidence."""


class RuledJudgement(NamedTuple):
    """A critic's judgement after the house rules, with everything that they changed."""

    judgement: CritiqueJudgement
    rulings: tuple[HouseRuling, ...]


def apply_house_rules(judgement: CritiqueJudgement, content: JudgeContent) -> RuledJudgement:
    """Apply the house rules and the severity table to the critic's issues.

    An issue that names a rule of the force ``does_not_matter`` is dropped or lowered, if the rule
    may do so. One that names another rule has the rule's severity. All others have the severity of
    their type in the table, if it has one.
    """
    by_type = {row.type: row for row in content.severities}
    remaining: list[RawIssue] = []
    dropped: list[RawIssue] = []
    rulings: list[HouseRuling] = []
    for raw_issue in judgement.raw_issues:
        rule = _applicable_rule(raw_issue, content)
        after = _apply_house_rule(raw_issue, rule, by_type)
        if after is None:
            dropped.append(raw_issue)
        else:
            remaining.append(after)
        severity = after.severity if after else None
        if severity != raw_issue.severity:
            rulings.append(_ruling(raw_issue, severity, rule))
    if not dropped:
        return RuledJudgement(judgement._replace(raw_issues=tuple(remaining)), tuple(rulings))
    # The other fields repeat the words of issues, so they lose those of dropped ones.
    dropped_texts = _texts_of(dropped) - _texts_of(remaining)
    return RuledJudgement(
        judgement._replace(
            raw_issues=tuple(remaining),
            unsupported_claims=tuple(
                text for text in judgement.unsupported_claims if text not in dropped_texts
            ),
            logical_gaps=tuple(
                text for text in judgement.logical_gaps if text not in dropped_texts
            ),
        ),
        tuple(rulings),
    )


def _apply_house_rule(
    raw_issue: RawIssue, rule: HouseRule | None, by_type: dict[IssueType, SeverityRule]
) -> RawIssue | None:
    """Return the issue as the rules leave it, or None if it's dropped."""
    if rule is None:
        row = by_type.get(raw_issue.type)
        return raw_issue if row is None else raw_issue._replace(severity=row.severity)
    if rule.severity is None:
        return None
    if rule.force == "does_not_matter":
        lower = min(raw_issue.severity, rule.severity, key=SEVERITIES.index)
        return raw_issue._replace(severity=lower)
    return raw_issue._replace(
        rule=f"{HOUSE_RULE}{rule.id}",
        severity=rule.severity,
        reason=f"{reason_of(rule)}. {raw_issue.reason}".rstrip(),
    )


def _applicable_rule(raw_issue: RawIssue, content: JudgeContent) -> HouseRule | None:
    """Return the rule that an issue names, unless code checks it or it may not lower the issue.

    The name comes from a model, and a hostile answer may have manipulated it.
    """
    rule = content.rule(raw_issue.house_rule) if raw_issue.house_rule else None
    if rule is None or rule.check is not None:
        return None
    return rule if rule.force != "does_not_matter" or rule.may_lower(raw_issue.type) else None


def _ruling(raw_issue: RawIssue, after: Severity | None, rule: HouseRule | None) -> HouseRuling:
    """Return the record of a changed severity; without a rule, the severity table changed it."""
    raised = after is not None and SEVERITIES.index(after) > SEVERITIES.index(raw_issue.severity)
    return HouseRuling(
        rule=rule.id if rule else "",
        sentence=rule.sentence if rule else f"The severity table's row for {raw_issue.type}",
        effect="dropped" if after is None else "raised" if raised else "lowered",
        type=raw_issue.type,
        before=raw_issue.severity,
        after=after,
        description=raw_issue.description,
        quote=raw_issue.quote,
    )


def ruling_notes(rulings: Sequence[HouseRuling]) -> tuple[str, ...]:
    """Return a note for people about each ruling, which names its rule."""
    notes = []
    for ruling in rulings:
        cause = (
            f"House rule {ruling.rule} (“{ruling.sentence}”)" if ruling.rule else ruling.sentence
        )
        change = (
            f"dropped an issue of severity {ruling.before}"
            if ruling.after is None
            else f"{ruling.effect} an issue from {ruling.before} to {ruling.after}"
        )
        notes.append(f"{cause} {change}: {ruling.description}")
    return tuple(notes)


def _texts_of(raw_issues: Sequence[RawIssue]) -> set[str]:
    return {
        text
        for raw_issue in raw_issues
        for text in (raw_issue.quote, raw_issue.description)
        if text
    }
