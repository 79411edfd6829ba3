"""Finds the worst issue of a case's original answer, counts all issues, and words both.

The functions are pure. The line quotes the answer and the evidence, which are untrusted. Show it as
plain text, or pass it through ``markdown.escape_markdown``.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from types import MappingProxyType
from typing import Literal, NamedTuple

from pydantic import Field

from masis.audit.text.comparison import quotation_key
from masis.schema.audit import CitationAudit, ClaimCheck, Contradiction, Issue
from masis.schema.base import Record
from masis.schema.case import Severity
from masis.schema.issue_groups import about_same_words
from masis.schema.review import Standing
from masis.schema.rules import KINDS, MUST_LOOK, REVIEW_CODES, Tone
from masis.schema.run import Iteration, Run
from masis.schema.wording import count_noun, describe_absent_figures, describe_marked_words, shorten
from masis.settings import OFFLINE
from masis.views.numbering import (
    LONGEST_VALUE,
    SEVERITIES,
    has_short_values,
    has_two_short_values,
    headline_kind,
    kind_beyond_checks,
    numbered_issues,
    raised_issues,
    worst_of,
)
from masis.views.words import SEVERITY

LONGEST_QUOTED = 90
"""Longest quotation in characters in a list: two of them fit into three lines at 1440 pixels.

The style sheet of the list cuts what doesn't fit into a narrower one.
"""
LONGEST_QUOTED_IN_HEAD = 130
"""Longest quotation at the top of a case page, which has room for two lines."""
LONGEST_SAID_IN_HEAD = 320
"""Longest text by the critic or by a check at the top of a case page, in characters."""
LONGEST_SAID = 160
"""Longest text by the critic or by a check, in characters."""
LONGEST_STORED = 400
"""Longest quotation that is stored, in characters around its disputed words."""

LONGEST_ID = 30
LONG_LINE = 135
"""Characters of a critic's description, quotation and reason above which a part is left out."""
SHORT_QUOTE = 40
"""Characters up to which a quotation is short enough to replace the critic's description."""
CONTEXT_BEFORE = 25
"""Characters kept before the disputed words, so that these stay visible in a narrow row."""


class Quotation(Record):
    """Untrusted words that a headline quotes.

    Attributes:
        role: Where the words come from. Those of the critic are shown without quotation marks.
        about: The disputed part of the words, which stays visible in a short line.

    """

    words: str
    about: str = ""
    role: Literal["answer", "evidence", "critic"] = "answer"

    @classmethod
    def of(cls, words: str, about: str = "", role: _Role = "answer") -> Quotation:
        """Return a quotation of at most ``LONGEST_STORED`` characters around the disputed words."""
        text = _quotable_words(words)
        # At most half of the room, so that words around the disputed ones are stored too.
        about = _single_line(about, LONGEST_TEXT)[: LONGEST_STORED // 2]
        return cls(words=_clip_around(text, about, LONGEST_STORED), about=about, role=role)

    def render(self, longest: int) -> str:
        """Return the words, cut around the disputed part, in their quotation marks."""
        if self.role == "critic":
            return _clip_text(self.words, max(longest, LONGEST_SAID))
        return f"“{_clip_around(self.words, self.about, longest)}”"


_Role = Literal["answer", "evidence", "critic"]
_Value = int | str | tuple[str, ...] | Quotation


class _Line(NamedTuple):
    """The name of a sentence in ``_SENTENCES`` and the values that it mentions."""

    sentence: str
    values: dict[str, _Value]


def _line(sentence: str, **values: _Value) -> _Line:
    return _Line(sentence, values)


# The sentences of headlines by the name under which they are stored. ``earlier`` is a line that was
# stored as text before headlines had parts.
_SENTENCES: dict[str, str] = {
    "no_answer": "No answer. {why}",
    "failed": "Audit failed",  # as stored by 0.1, with the technical message as {why}
    "failed_at": "Audit failed at the step {step}",
    "unfinished": "The audit finished no iteration",
    "checked": "{checked}",
    "stated": "{message}",
    "stated_of": "{message}: {claim}",
    "stated_why": "{message}. {reason}",
    "stated_of_why": "{message}: {claim}. {reason}",
    "says_why": "The answer says {claim}. {reason}",
    "figures": "{figures}",
    "figures_of": "{figures}: {claim}",
    "marked": "{marked}",
    "marked_of": "{marked}: {claim}",
    "unconfirmed": "{unconfirmed}",
    "quote_fabricated": "Quotes {cited} with words that aren't in the evidence: {quote}",
    "quote_spliced": "Quotes {cited} with words from several places: {quote}",
    "quote_other_document": "Quotes {cited}, but the words are in {other}: {quote}",
    "partial": "Supported only in part: {claim}",
    "redundant": "{cited} adds nothing to the other citations of {claim}",
    "misattributed": "{cited} doesn't support {claim}",
    "misattributed_better": "{cited} doesn't support {claim}; {better} does",
    "cites_one": "Cites {first}, which doesn't exist",
    "cites_one_in": "Cites {first}, which doesn't exist: {claim}",
    "cites_two": "Cites {first} and {second}, which don't exist",
    "cites_many": "Cites {first}, {second} and {more} more that don't exist",
    "denied": "The evidence contradicts {claim}",
    "contradicts": "{source} contradicts {claim}",
    "contradicts_by": "{source} contradicts {claim}: {theirs}",
    "source_contradicts": "The source of {source}, {theirs}, contradicts {claim}",
    "differs": "{source} has {theirs} where the answer has {mine}",
    "absent": "{mine} isn't in the evidence: {claim}",
    "unsupported": "No evidence supports {claim}",
    "quoted": "{claim}",
    "earlier": "{message}",
}

_WHY_UNDECIDED = {
    "language": "the verifier doesn't support the language",
    "instruction": "the evidence contains instructions to its reader",
    "limits": "over the limits",
    "quotation": "no valid quotation",
    "either_way": "can be read either way",
    "offline": "the offline checks confirm only what is copied from the evidence",
}


def _word_sentence(
    sentence: str, values: Mapping[str, _Value], longest: int, longest_said: int = LONGEST_SAID
) -> str:
    words = {}
    for name, value in values.items():
        if isinstance(value, Quotation):
            words[name] = value.render(longest)
        elif isinstance(value, tuple):
            describe = describe_absent_figures if name == "figures" else describe_marked_words
            words[name] = describe(value)
        else:
            words[name] = (
                f"{value:,}" if isinstance(value, int) else _clip_text(value, longest_said)
            )
    if sentence == "earlier":
        return str(values["message"])
    if sentence == "checked":
        words["checked"] = _checked_words(values)
    if sentence == "unconfirmed":
        noun = "claim" if values["total"] == 1 else "claims"
        why = _WHY_UNDECIDED.get(str(values["why"]))
        words["unconfirmed"] = (
            f"{words['count']} of {words['total']} {noun} not confirmed{f': {why}' if why else ''}"
        )
    # A quotation that was shortened at its end already has an ellipsis.
    return _SENTENCES[sentence].format_map(words).replace("….", "…").rstrip()


def _checked_words(values: Mapping[str, _Value]) -> str:
    """Describe the checks of an answer without issues, and whether only offline checks ran."""
    supported, claims, cited = (int(str(values[name])) for name in ("supported", "claims", "cited"))
    parts = [f"{supported:,} of {count_noun(claims, 'claim')} supported"] if claims else []
    parts += [count_noun(cited, "citation resolves", "citations resolve")] if cited else []
    line = f"{'Offline checks: ' if values['offline'] else ''}{', '.join(parts) or 'nothing found'}"
    return line[0].upper() + line[1:]


class Headline(Record):
    """The worst issue of an answer, with its kind and the count of issues by kind.

    It is stored as JSON and worded when it is shown, so that its words are always the current ones.

    Attributes:
        kind: The kind of the worst issue, in ``KINDS``.
        sentence: The name of the sentence about it.
        values: What the sentence mentions: quotations, names, counts and lists of words.
        counts: The number of issues of each kind, most serious first.
        minor: Whether the case still counts as "Nothing found"; the line then calls its issue less
            serious.

    """

    kind: str
    sentence: str
    values: dict[str, int | str | tuple[str, ...] | Quotation] = Field(default_factory=dict)
    counts: tuple[tuple[str, int], ...] = ()
    minor: bool = False

    @property
    def text(self) -> str:
        """The line as plain text, with shortened quotations."""
        return self.render(LONGEST_QUOTED)

    def render(self, longest: int, longest_said: int = LONGEST_SAID) -> str:
        """Return the line with quotations and texts of at most so many characters."""
        lead = _line_prefix(self.kind, dict(self.counts).get(self.kind, 0))
        if self.minor:
            lead = f"Less serious, {lead[:1].lower()}{lead[1:]}" if lead else "Less serious: "
        return lead + _word_sentence(self.sentence, self.values, longest, longest_said)

    @property
    def tone(self) -> Tone:
        """The tone in which to show the line."""
        return "calm" if self.minor else KINDS[self.kind].tone

    @property
    def others(self) -> str:
        """The counts by kind that the line itself doesn't state, or "" if it states them all."""
        left: list[str] = []
        for kind, count in self.counts:
            row = KINDS[kind]
            if row.is_issue and kind != self.kind:
                left.append(count_noun(count, row.one, row.many))
            elif row.is_issue and count > 1 and not row.counted_in_line:
                left.append(count_noun(count - 1, f"more {row.one}", f"more {row.many}"))
        return " · ".join(left)

    @property
    def lines(self) -> str:
        """The line, and below it the counts of the other issues if there are any."""
        return "\n".join(filter(None, (self.text, self.others)))


def marks_exceed(original: Iteration, worst: Headline) -> bool:
    """Return whether the answer has more marks of a kind than its headline counts issues of it.

    Words with several issues count once, under the most serious one, and are marked for each.
    """
    counts = dict(worst.counts)
    verdicts = Counter(check.verdict for check in original.claims)
    sentences = Counter(sentence.status for sentence in original.citation_audit.sentences)
    marked = {
        "contradicted": verdicts["contradicted"],
        "unsupported": verdicts["unsupported"],
        "uncited": sentences["uncited"],
    }
    return bool(worst.others) and any(
        count > counts[kind] for kind, count in marked.items() if kind in counts
    )


def standing(run: Run) -> Standing:
    """Return the status of an audited case before anyone decides it.

    The database derives the same status in SQL.
    """
    codes = {reason.code for reason in run.review_reasons}
    if not run.iterations and run.termination_reason == "cancelled":
        return "not_audited"
    if codes & MUST_LOOK:
        return "wrong"
    if run.termination_reason == "no_answer":
        return "no_answer"
    if "error" in codes or not run.iterations:
        return "failed"
    return "not_confirmed" if codes else "nothing_found"


def headline(run: Run) -> Headline:
    """Return the worst issue of a run's original answer, quoting the words it concerns."""
    original = run.original
    if run.termination_reason == "no_answer":
        why = next((reason.message for reason in run.review_reasons), "")
        values: dict[str, _Value] = {"why": _stored_text(why)}
        return Headline(kind="no_answer", sentence="no_answer", values=values)
    if original is None:
        step = next((warning.step for warning in reversed(run.warnings) if warning.step), None)
        values = {"step": step.replace("_", " ")} if step else {}
        return Headline(
            kind="failed", sentence="failed_at" if step else "unfinished", values=values
        )
    lines = _lines_by_kind(original.citation_audit, original.claims, raised_issues(original))
    lines |= _review_reason_lines(run, lines)
    counts = tuple((kind, lines[kind][1]) for kind in KINDS if kind in lines)
    worst = _worst_kind(original, [kind for kind, _ in counts])
    if worst == "redundant":  # A redundant citation isn't an error, and the answer marks it.
        values = {
            "supported": sum(check.verified for check in original.claims),
            "claims": len(original.claims),
            "cited": sum(
                citation.status == "valid" for citation in original.citation_audit.citations
            ),
            "offline": int(
                {model for role, model in run.models.items() if role != "drafter"} <= {OFFLINE}
            ),
        }
        return Headline(kind="nothing", sentence="checked", values=values, counts=counts)
    line = lines[worst][0]
    return Headline(
        kind=worst,
        sentence=line.sentence,
        values=line.values,
        counts=counts,
        minor=KINDS[worst].minor and standing(run) == "nothing_found",
    )


def _worst_kind(original: Iteration, kinds: Sequence[str]) -> str:
    """Return the kind of the issue with number 1 if it flags the answer, else the first kind."""
    severity = {kind: len(SEVERITIES) for kind in kinds}
    for group in reversed(numbered_issues(original)):
        kind = headline_kind(group[0])
        if KINDS[kind].tone == "bad":
            severity[kind] = worst_of(group)
    return min(kinds, key=severity.__getitem__, default="redundant")


def worst_severity(original: Iteration) -> Severity | None:
    """Return the severity of the worst issue of an answer, or None if there isn't one.

    Remarks that don't flag the answer (unconfirmed claims, redundant citations) are ignored.
    """
    severities = {
        issue.severity
        for issue in raised_issues(original)
        if KINDS[headline_kind(issue)].tone != "calm"
    }
    return next((severity for severity in SEVERITY if severity in severities), None)


def _line_prefix(kind: str, count: int) -> str:
    """Return the words that introduce the line of a kind, or "" if it needs none."""
    row = KINDS[kind]
    return f"{count_noun(count, row.one, row.many)}: " if kind == "uncited" else row.prefix


def issue_lines(
    audit: CitationAudit, claims: Sequence[ClaimCheck], issues: Sequence[Issue]
) -> dict[str, tuple[str, int]]:
    """Return the line and the count for each kind of issue in an answer, most serious first.

    The same words of the answer count once, under their most serious issue. What the critic says
    about a sentence is counted with the first of its failing claims; each failing claim counts as
    an issue. Steps that haven't finished yet contribute nothing, so a running audit shows its
    results so far.
    """
    lines = _lines_by_kind(audit, claims, issues)
    return {
        kind: (_line_prefix(kind, count) + _word_sentence(*line, LONGEST_QUOTED), count)
        for kind, (line, count) in lines.items()
    }


def _lines_by_kind(
    audit: CitationAudit, claims: Sequence[ClaimCheck], issues: Sequence[Issue]
) -> dict[str, tuple[_Line, int]]:
    by_kind: dict[str, list[_Line]] = {}
    markers = written_markers(audit)
    # Spans already flagged, by sentence. An empty range means the whole sentence.
    flagged: defaultdict[int, list[range]] = defaultdict(list)
    starts = [span.start for span in audit.sentences]
    lines: list[tuple[str, _Line, int | None, range]] = [
        (kind, text, None, range(0)) for kind, text in _problem_lines(audit, (), markers)
    ]
    critic_issues: dict[int | None, Issue] = {}
    # Several issues about the same words count once, under the most serious one.
    groups = about_same_words(issues)
    covered = {issue for group in groups for issue in _issues_counted_elsewhere(group)}
    severities = {
        (issue.start, issue.end): worst_of(group)
        for group in groups
        for issue in group
        if issue.source == "claims"
    }

    def gravest_first(check: ClaimCheck) -> tuple[int, bool]:
        span = check.claim.start, check.claim.end
        return severities.get(span, len(SEVERITIES)), not has_short_values(check)

    again_claimed = {
        (issue.start, issue.end)
        for issue in covered
        if issue.source == "claims" and issue.start is not None
    }
    counting = [
        check for check in claims if (check.claim.start, check.claim.end) not in again_claimed
    ]
    for issue in issues:
        if (kind := kind_beyond_checks(issue)) and issue not in covered:
            within = None if issue.start is None else bisect_right(starts, issue.start) - 1
            lines.append((kind, _issue_line(issue, markers), within, range(0)))
            if kind in ("safety", "serious"):
                critic_issues.setdefault(within, issue)
    unquoted = audit.model_copy(update={"quotes": ()})
    lines += [
        (
            kind,
            text,
            check.claim.sentence,
            range(check.claim.start or 0, (KINDS[kind].per_claim and check.claim.end) or 0),
        )
        for check in sorted(counting, key=gravest_first)
        for kind, text in _problem_lines(unquoted, (check,), markers, critic_issues)
    ]
    # KINDS is declared from the most serious kind to the least.
    gravity = [*KINDS]
    for kind, text, sentence, words in sorted(lines, key=lambda line: gravity.index(line[0])):
        # Lines are sorted by severity, so a later line about the same words isn't counted.
        before = [] if sentence is None else flagged[sentence]
        same = next(
            (
                earlier
                for earlier in before
                if not words
                or not earlier
                or (earlier.start < words.stop and words.start < earlier.stop)
            ),
            None,
        )
        if same is None:
            by_kind.setdefault(kind, []).append(text)
        # A line about some words is more precise than an earlier one about the whole sentence.
        if KINDS[kind].tone != "calm" and (same is None or (words and not same)):
            if same is not None:
                before.remove(same)
            before.append(words)
    counted = {kind: (texts[0], len(texts)) for kind, texts in by_kind.items()}
    if fabricated := list(dict.fromkeys(audit.invalid_citations)):
        line = _fabricated_line(audit, fabricated, markers)
        counted["fabricated"] = line, len(audit.invalid_citations)
    if uncited := [
        text_span.text
        for place, text_span in enumerate(audit.sentences)
        if text_span.status == "uncited" and not flagged[place]
    ]:
        counted["uncited"] = _line("quoted", claim=Quotation.of(uncited[0])), len(uncited)
    if undecided := [
        check
        for check in counting
        if check.verdict == "unverifiable"
        and (check.claim.sentence is None or not flagged[check.claim.sentence])
    ]:
        counted["unconfirmed"] = _unconfirmed_line(undecided, len(claims)), len(undecided)
    if calculated := [
        check for check in counting if check.figures and check.verdict in _MAY_BE_CALCULATED
    ]:
        counted["figure"] = (
            _figures_line(calculated),
            sum(len(check.figures) for check in calculated),
        )
    if tagged := [
        check for check in counting if check.marked and check.verdict in _MAY_BE_CALCULATED
    ]:
        counted["marked"] = _tagged_line(tagged), sum(len(check.marked) for check in tagged)
    return {kind: counted[kind] for kind in KINDS if kind in counted}


# Verdicts with which a missing figure or a mark deserves a line of its own.
#
# With the other verdicts, the claim's own line already states the problem.
_MAY_BE_CALCULATED = ("unverifiable", "supported", "unscored")


def _figures_line(checks: Sequence[ClaimCheck]) -> _Line:
    """Return the line about figures not in the evidence; it quotes the claim if it is only one."""
    figures = tuple(
        _single_line(figure.claim_text, LONGEST_VALUE)
        for check in checks
        for figure in check.figures
    )
    if len(checks) > 1:
        return _line("figures", figures=figures)
    return _line(
        "figures_of", figures=figures, claim=Quotation.of(_claim_text(checks[0]), figures[0])
    )


def _tagged_line(checks: Sequence[ClaimCheck]) -> _Line:
    """Return the line about words marked by the tagger; it quotes the claim if it is only one."""
    marked = tuple(
        _single_line(words.claim_text, LONGEST_VALUE) for check in checks for words in check.marked
    )
    if len(checks) > 1:
        return _line("marked", marked=marked)
    return _line("marked_of", marked=marked, claim=Quotation.of(_claim_text(checks[0]), marked[0]))


def _issues_counted_elsewhere(group: Sequence[Issue]) -> Sequence[Issue]:
    first, *others = sorted(group, key=lambda issue: [*KINDS].index(headline_kind(issue)))
    return others if first.start is None or KINDS[headline_kind(first)].absorbs else ()


def _review_reason_lines(
    run: Run, kinds_found: Collection[str]
) -> Iterator[tuple[str, tuple[_Line, int]]]:
    """Yield the reasons for review that the issues don't already state."""
    is_flagged = any(KINDS[kind].tone == "bad" for kind in kinds_found)
    for kind, codes in (
        ("reason", () if is_flagged else MUST_LOOK),
        ("unscored", ("unscored",)),
        ("uncertified", _REASONS_ABOUT_ANSWER),
    ):
        if messages := [reason.message for reason in run.review_reasons if reason.code in codes]:
            yield (
                kind,
                (_line("stated", message=_stored_text(messages[0].rstrip("."))), len(messages)),
            )


_REASONS_ABOUT_ANSWER = frozenset(code for code, row in REVIEW_CODES.items() if row.about_answer)


def _problem_lines(
    audit: CitationAudit,
    claims: Sequence[ClaimCheck],
    markers: Mapping[str, str],
    critic_issues: Mapping[int | None, Issue] = MappingProxyType({}),
) -> Iterator[tuple[str, _Line]]:
    """Yield kind and line of each problem with quotations, claims and citations, in answer order.

    Args:
        audit: The citations and quotations of the answer.
        claims: The checked claims.
        markers: The markers of the answer (``written_markers``).
        critic_issues: The critic's issues by sentence. They explain a contradiction that the quoted
            words alone don't show.

    """
    for quote in audit.quotes:
        if quote.finding != "verbatim":
            yield (
                "misquoted",
                _line(
                    f"quote_{quote.finding}",
                    cited=_chunk_name(quote.evidence_id, markers),
                    other=_chunk_name(quote.found_in or "", markers),
                    quote=Quotation.of(quote.quote),
                ),
            )
    # Checks with two short values are first, because a reader can verify them at a glance.
    for check in sorted(claims, key=lambda check: not has_short_values(check)):
        if check.verdict == "contradicted" or (
            check.verdict == "supported" and check.contradictions
        ):
            critic_issue = (
                None if _shows_contradiction(check) else critic_issues.get(check.claim.sentence)
            )
            yield (
                "contradicted",
                (
                    _issue_line(critic_issue, markers, check)
                    if critic_issue
                    else _contradicted_line(check, markers)
                ),
            )
        elif check.verdict == "unsupported":
            yield "unsupported", _unsupported_line(check)
        elif check.verdict == "partial":
            missing = next((check.claim.text[start:end] for start, end in check.uncovered), "")
            yield "partial", _line("partial", claim=Quotation.of(_claim_text(check), missing))
        for reference in check.references:
            cited = _chunk_name(reference.evidence_id, markers)
            claim = Quotation.of(_claim_text(check))
            if reference.finding == "redundant":
                yield "redundant", _line("redundant", cited=cited, claim=claim)
            elif reference.finding == "misattributed" and reference.better:
                better = _chunk_name(reference.better, markers)
                yield (
                    "misattributed",
                    _line("misattributed_better", cited=cited, claim=claim, better=better),
                )
            elif reference.finding == "misattributed":
                yield "misattributed", _line("misattributed", cited=cited, claim=claim)


def _issue_line(issue: Issue, markers: Mapping[str, str], check: ClaimCheck | None = None) -> _Line:
    """Return the line of an issue; the critic's issues quote the answer and the evidence.

    A long quotation is reduced to the disputed words in ``check``, the check of the claim. If there
    are none, or only one word, the critic's description is used instead. If the issue has no
    quotation, the claim is quoted.
    """
    if issue.rule == "source_conflict":  # Only the reason names both values.
        return _line("stated", message=_stored_text(issue.reason.rstrip(".")))
    problem = _quotable_words(issue.point or issue.description)
    if issue.source != "critic":
        return _line("stated", message=_stored_text(problem))
    reason, quote = (
        _quotable_words(issue.reason),
        _quotable_words(issue.quote or (_claim_text(check) if check else "")),
    )
    if (
        reason
        and issue.evidence_ids
        # The critic may name the chunk itself, and in another case: "Chunk_1 says ...".
        and not any(
            evidence_id.casefold() in reason.casefold() for evidence_id in issue.evidence_ids
        )
    ):
        # Not "chunk_1: ...": the critic's words may sum up several chunks, or say what none says.
        named = [_chunk_name(name, markers) for name in issue.evidence_ids[:2]]
        more = ", …" if len(issue.evidence_ids) > len(named) else ""
        reason = f"{reason} (see {', '.join(named)}{more})"
    quote = "" if quote.casefold() in problem.casefold() else quote
    message, why = (Quotation.of(text, role="critic") for text in (problem, reason))
    if quote and reason and len(f"{problem}{quote}{reason}") > LONG_LINE:
        at_fault = (
            _quotable_words(contradiction.claim_text)
            for contradiction in (check.contradictions if check else ())
        )
        about = next((words for words in at_fault if " " in words and words in quote), "")
        if about or len(quote) <= SHORT_QUOTE:
            return _line("says_why", claim=Quotation.of(quote, about), reason=why)
        return _line("stated_why", message=message, reason=why)
    if quote:
        claim = Quotation.of(quote)
        return (
            _line("stated_of_why", message=message, claim=claim, reason=why)
            if reason
            else _line("stated_of", message=message, claim=claim)
        )
    if reason:
        return _line("stated_why", message=message, reason=why)
    return _line("stated", message=message)


def _fabricated_line(
    audit: CitationAudit, references: Sequence[str], markers: Mapping[str, str]
) -> _Line:
    names = [
        _single_line(markers.get(reference, f"[{reference}]"), LONGEST_ID)
        for reference in references
    ]
    if len(names) > 2:
        return _line("cites_many", first=names[0], second=names[1], more=len(names) - 2)
    if len(names) == 2:
        return _line("cites_two", first=names[0], second=names[1])
    cited = next(
        (citation for citation in audit.citations if citation.reference == references[0]), None
    )
    if cited is None or cited.sentence is None:
        return _line("cites_one", first=names[0])
    sentence = audit.sentences[cited.sentence]
    spans = [
        (citation.marker_start - sentence.start, citation.marker_end - sentence.start)
        for citation in audit.citations
    ]
    spans = [span for span in spans if 0 <= span[0] < len(sentence.text)]
    before = _without_markers(sentence.text[: max(cited.marker_start - sentence.start, 0)], spans)
    # A marker cites the words just before it.
    about = " ".join(_quotable_words(before).split()[-3:])
    return _line(
        "cites_one_in",
        first=names[0],
        claim=Quotation.of(_without_markers(sentence.text, spans), about),
    )


def _clearest_contradiction(check: ClaimCheck) -> Contradiction | None:
    """Return the contradiction of a claim that is easiest to see, or None if none is named."""
    between = sorted(
        check.contradictions,
        key=lambda contradiction: (not contradiction.evidence_text, -contradiction.strength),
    )
    return next(
        (contradiction for contradiction in between if has_two_short_values(contradiction)),
        between[0] if between else None,
    )


def _shows_contradiction(check: ClaimCheck) -> bool:
    """Whether the words of both sides, shown next to each other, make the contradiction visible."""
    first = _clearest_contradiction(check)
    if first is None:
        return False
    claim, mine, theirs = (
        _quotable_words(text)
        for text in (_claim_text(check), first.claim_text, first.evidence_text)
    )
    return has_two_short_values(first) or bool(theirs and _differing_words(claim, mine, theirs))


def _contradicted_line(check: ClaimCheck, markers: Mapping[str, str]) -> _Line:
    first = _clearest_contradiction(check)
    if first is None:
        claim_quoted = Quotation.of(_claim_text(check))
        if not check.sources:
            return _line("denied", claim=claim_quoted)
        return _line(
            "contradicts", source=_chunk_name(check.sources[0], markers), claim=claim_quoted
        )
    source, theirs = _chunk_name(first.evidence_id, markers), _quotable_words(first.evidence_text)
    mine = _single_line(first.claim_text, LONGEST_VALUE)
    if not theirs:
        return _absent_line(mine, _claim_text(check))
    if has_two_short_values(first):
        return _line("differs", source=source, theirs=theirs, mine=mine)
    claim = _quotable_words(_claim_text(check))
    mine = _quotable_words(first.claim_text)
    whole, about = claim if mine in claim else mine, _differing_words(claim, mine, theirs)
    ours = Quotation.of(whole, mine if mine != whole else _differing_words(theirs, theirs, whole))
    return _line(
        "source_contradicts" if first.kind == "source" else "contradicts_by",
        source=source,
        claim=ours,
        theirs=Quotation.of(theirs, about, "evidence"),
    )


def _unsupported_line(check: ClaimCheck) -> _Line:
    missing = [
        text
        for start, end in check.uncovered
        if (text := _single_line(check.claim.text[start:end], LONGEST_VALUE))
    ]
    return (
        _absent_line(missing[0], _claim_text(check))
        if missing
        else _line("unsupported", claim=Quotation.of(_claim_text(check)))
    )


def _absent_line(words: str, claim: str) -> _Line:
    return _line("absent", mine=words, claim=Quotation.of(claim, words))


def _unconfirmed_line(undecided: Sequence[ClaimCheck], total: int) -> _Line:
    why = next((check.abstained for check in undecided if check.abstained), None)
    offline = all(check.judged_by == OFFLINE for check in undecided)
    return _line(
        "unconfirmed", count=len(undecided), total=total, why=why or ("offline" if offline else "")
    )


def _claim_text(check: ClaimCheck) -> str:
    """Return the words of a claim without its citation markers."""
    return _without_markers(check.claim.text, check.claim.markers)


def _without_markers(text: str, markers: Iterable[tuple[int, int]]) -> str:
    # Markers can overlap in a citation that was supplied with the answer.
    at, kept = 0, []
    for start, end in sorted(markers):
        kept.append(text[at : max(start, at)])
        at = max(at, end)
    return "".join([*kept, text[at:]])


# Control characters, zero-width characters, and characters that reverse the direction of text.
#
# For example, U+202E would show the rest of the line from right to left. Lone surrogates can't be
# encoded as UTF-8.
_INVISIBLE_CHARS = re.compile(
    "[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]+"
)


LONGEST_TEXT = 2_000
"""Characters of an untrusted text that are processed at most."""


def _single_line(text: str, longest: int) -> str:
    """Return untrusted text as one line of visible characters."""
    return shorten(" ".join(_INVISIBLE_CHARS.sub(" ", text[:LONGEST_TEXT]).split()), longest)


def written_markers(audit: CitationAudit) -> dict[str, str]:
    """Return the markers of an answer as it writes them, such as ``(Source 9)``.

    The keys are the ids of the chunks that they cite, or the references that don't name a chunk. A
    marker of several references, such as ``[1, 9]``, doesn't name any of them.
    """
    places = Counter((citation.marker_start, citation.marker_end) for citation in audit.citations)
    markers: dict[str, str] = {}
    for citation in audit.citations:
        span = citation.marker_start, citation.marker_end
        if citation.sentence is None or places[span] > 1:
            continue
        sentence = audit.sentences[citation.sentence]
        text = sentence.text[span[0] - sentence.start : span[1] - sentence.start]
        if text.strip():
            markers.setdefault(citation.evidence_id or citation.reference, text)
    return markers


def _chunk_name(name: str, markers: Mapping[str, str]) -> str:
    # Without brackets, a number would look like a count.
    return _single_line(markers.get(name, f"[{name}]") if name.isdigit() else name, LONGEST_ID)


def _quotable_words(words: str) -> str:
    """Return words to quote as one line, without blanks before punctuation or a final stop."""
    return re.sub(r"\s+([.,;:!?])", r"\1", _single_line(words, LONGEST_TEXT)).rstrip(" .,;:")


def _stored_text(text: str) -> str:
    return _single_line(text, LONGEST_STORED)


def _clip_around(text: str, about: str, longest: int) -> str:
    at = max(text.find(about), 0)
    # The start of the text is enough if the disputed words are in it.
    if len(text) <= longest or at + len(about) < longest:
        return _clip_text(text, longest)
    # The cut is at most this far before the disputed words. It is farther if the text after them is
    # short, and nearer if they need the room.
    lead = max(
        0, min(max(CONTEXT_BEFORE, longest - 1 - (len(text) - at)), longest - len(about) - 2)
    )
    start = text.find(" ", at - lead - 1, at) + 1 or at
    return f"…{_clip_text(text[start:], longest - 1)}" if start else _clip_text(text, longest)


def _clip_text(text: str, longest: int) -> str:
    """Shorten a text to at most ``longest`` characters, between words if possible."""
    if len(text) <= longest:
        return text
    # If the last word takes up half of the room, as a long id does, the text is cut within it.
    words, _, rest = text[:longest].rpartition(" ")
    if len(rest) >= longest / 2:
        return shorten(text, longest)
    # A parenthesis that would stay open is left out, unless it's most of the text.
    before, _, aside = words.rpartition("(")
    if ")" not in aside and len(before) > longest / 2:
        words = before
    return f"{words.rstrip(' .,;:')}…"


_WORD = re.compile(r"\S+")
LEAST_SHARED_WORDS = 0.35
"""Share of the claim's words that the evidence must contain to be compared word by word."""


def _comparable_words(words: Sequence[re.Match[str]]) -> list[str]:
    return [_comparable_word(word.group()) for word in words]


@lru_cache(maxsize=16_384)  # The headlines of a page have most of their words in common.
def _comparable_word(word: str) -> str:
    """Drop punctuation around a word for comparison, but keep brackets and signs of figures."""
    key = quotation_key(word).strip(",;:?").rstrip(".")
    if any(map(str.isdigit, key)):
        return key
    return (key.lower() if key.istitle() else key).strip("().!")


# Words that can reverse a claim: a digit, "not", "without", or "n't" as in "doesn't".
_DECIDING = re.compile(
    r"\d|\b(?:no|not|never|none|neither|nor|without|cannot)\b|n['’]t\b", re.IGNORECASE
)


def _differing_words(claim: str, mine: str, evidence: str) -> str:
    """Return the words of the evidence that replace the claim's own, or "" if the two don't differ.

    If there are several differences, one with a figure or a negation is preferred, because other
    differences are often just wording.
    """
    ours, theirs = (list(_WORD.finditer(text)) for text in (claim, evidence))
    at = claim.find(mine)
    is_own = [at < word.end() and word.start() < at + len(mine) for word in ours]
    # autojunk would ignore words that make up over 1% of a long text, such as "the" or a unit.
    compared = SequenceMatcher(
        None, _comparable_words(ours), _comparable_words(theirs), autojunk=False
    )
    changes = [
        (
            any(is_own[first:last]),
            any(_DECIDING.search(word.group()) for word in theirs[start:end]),
            kind == "replace",
            -start,
            end,
        )
        for kind, first, last, start, end in compared.get_opcodes()
        if kind in ("replace", "insert")
    ]
    alike = sum(block.size for block in compared.get_matching_blocks())
    if not changes or alike < LEAST_SHARED_WORDS * len(ours):
        return ""
    # The start is stored as a negative number, so that the first of equal changes is the greatest.
    *_, start, end = max(changes)
    return evidence[theirs[-start].start() : theirs[end - 1].end()]
