"""One line that says what is worst about the original answer of an audited case, and counts of all
issues. Pure.

The line quotes the answer and the evidence, which come from outside: show it as text or through
``markdown.escaped``.
"""

from __future__ import annotations

import hashlib
import inspect
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cache, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from masis.audit.issues import about_same_words
from masis.audit.text.comparison import quotation_key
from masis.schema.audit import CitationAudit, ClaimCheck, Contradiction, Issue
from masis.schema.case import Severity
from masis.schema.review import Standing
from masis.schema.run import MUST_LOOK, Iteration, ReviewCode, Run
from masis.schema.wording import count_noun, describe_absent_figures, describe_marked_words, shorten
from masis.settings import OFFLINE
from masis.views.words import SEVERITY, Tone, Word

LONGEST_HEADLINE = 150
"""Characters of a headline: what a row of the queue shows in two lines at 1440 pixels."""
LONGEST_WITH_POINT = 210
"""Characters of one with the critic's words: a third line of the row, where it says what the
evidence has.
"""
LONGEST_IN_HEAD = 260
"""Characters of the line in the head of a case: two lines of the page."""

LONGEST_VALUE, LONGEST_ID = 40, 30
LEAST_QUOTED = 40
"""Characters that a quotation of the answer keeps where what the evidence says takes the room."""
LONGEST_DESCRIPTION = 100
"""Characters of what the critic says is wrong where that stands in place of the answer's words."""
LONGEST_LEAD = 15
"""Characters of what may stand before a line of the critic and between its parts."""
LED_IN = 25
"""Characters of a quotation before the words it is about: where a narrow row cuts the line, they
still stand in it.
"""


@cache
def wording_version() -> str:
    """Return the version of the words that this module makes of a run: a digest of the code that
    makes them.

    A stored line says by which version it was worded, so that one of another version is worded
    again where it is shown. Nobody has to remember to raise it.
    """
    makers = {
        str(inspect.getsourcefile(each)) for each in (headline, about_same_words, count_noun, Word)
    }
    return hashlib.sha256(b"".join(Path(each).read_bytes() for each in sorted(makers))).hexdigest()[
        :16
    ]


def list_line(run: Run) -> str:
    """Return the headline of a run as lists store it: the line, and in a second one counts of the
    rest by kind.
    """
    worst = headline(run)
    return "\n".join(filter(None, (worst.text, worst.others)))


class Kind(NamedTuple):
    """A kind of issue: how one and many of them are counted, and how grave it feels."""

    one: str
    many: str
    tone: Tone


KINDS: dict[str, Kind] = {
    "failed": Kind("failed audit", "failed audits", "warn"),
    "no_answer": Kind("case without an answer", "cases without an answer", "warn"),
    "safety": Kind("safety issue", "safety issues", "bad"),
    "instruction": Kind("instruction to the reader", "instructions to the reader", "bad"),
    "fabricated": Kind("fabricated citation", "fabricated citations", "bad"),
    "misquoted": Kind("false quotation", "false quotations", "bad"),
    "contradicted": Kind("contradicted claim", "contradicted claims", "bad"),
    "unsupported": Kind("unsupported claim", "unsupported claims", "bad"),
    "misattributed": Kind("misattributed citation", "misattributed citations", "bad"),
    "partial": Kind("partly supported claim", "partly supported claims", "bad"),
    "serious": Kind("serious issue by the critic", "serious issues by the critic", "bad"),
    "reason": Kind("reason to look", "reasons to look", "bad"),
    "figure": Kind("figure not in the evidence", "figures not in the evidence", "calm"),
    "marked": Kind("place marked by the tagger", "places marked by the tagger", "calm"),
    "missing": Kind("missing point", "missing points", "warn"),
    "uncited": Kind("sentence without a citation", "sentences without a citation", "warn"),
    "lesser": Kind("lesser issue by the critic", "lesser issues by the critic", "warn"),
    "conflict": Kind("conflict between sources", "conflicts between sources", "warn"),
    "unscored": Kind("step without a result", "steps without a result", "calm"),
    "unconfirmed": Kind("claim not confirmed", "claims not confirmed", "calm"),
    "uncertified": Kind("reason not to certify", "reasons not to certify", "calm"),
    "redundant": Kind("remark: redundant citation", "remarks: redundant citations", "calm"),
    "nothing": Kind("", "", "calm"),
}
"""Every kind of issue, the gravest first: the first that occurs makes the headline, but for a
redundant citation.
"""

_SAYS_HOW_MANY = frozenset({"fabricated", "uncited", "figure", "marked", "unscored", "unconfirmed"})
"""Kinds whose sentence counts them already."""

_LEADS = {"missing": "Missing: ", "conflict": "Sources disagree: "}
"""How the line of a kind begins."""

_LESSER = frozenset({"missing", "uncited", "lesser", "conflict"})
"""Kinds of issues with which a case still counts as one where nothing was found: the line says that
they are lesser.
"""

_OF_A_CLAIM = frozenset({"contradicted", "unsupported", "partial"})
"""Kinds that are about the words of a claim; the others are about its sentence."""

_TAKES_ITS_WORDS = frozenset({"fabricated", "misquoted"})
"""Kinds under which the list of issues draws whatever else is raised about their words."""

_NO_ISSUE = frozenset({"failed", "no_answer", "reason", "uncertified"})
"""Kinds that no issue of the answer is counted under."""


class Quotation(NamedTuple):
    """Words from outside that a line quotes, within ``marks``; ``about`` are those of them that the
    line is about.

    ``point``: what says what is wrong is cut last, as the answer's words stand on the page.
    """

    words: str
    about: str = ""
    marks: tuple[str, str] = ("“", "”")
    point: bool = False

    @property
    def least(self) -> int:
        """Characters that it keeps where what the evidence says takes the room: those that it is
        about.
        """
        return max(LEAST_QUOTED, len(self.about) + len("……"))


class _Line(NamedTuple):
    """The parts of a line: words of ours, and quotations, of which it holds as much as it has room
    for.
    """

    parts: tuple[str | Quotation, ...]

    def led_by(self, lead: str, longest: int = LONGEST_HEADLINE) -> str:
        """Return the line behind words that lead it in; the answer's quotations are cut before what
        makes the point.
        """
        quoted = [each for each in self.parts if isinstance(each, Quotation)]
        if not quoted:
            return _clip_text(_clean("".join([lead, *map(str, self.parts)]), LONGEST_TEXT), longest)
        longest = (
            max(longest, LONGEST_WITH_POINT)
            if any(each.marks == ("", "") for each in quoted)
            else longest
        )
        ours = sum(
            len(each) if isinstance(each, str) else sum(map(len, each.marks)) for each in self.parts
        )
        lengths = {each: len(_quotable_words(each.words)) for each in quoted}
        room = max(longest - len(lead) - ours, 20 * len(quoted))
        kept = sum(min(lengths[each], each.least) for each in quoted if not each.point)
        shares = _share_room(
            max(room - kept, room // 2), [lengths[each] for each in quoted if each.point]
        )
        room -= sum(shares)
        shares += _share_room(room, [lengths[each] for each in quoted if not each.point])
        limits = dict(zip(sorted(quoted, key=lambda each: not each.point), shares, strict=True))
        line = "".join(
            [
                lead,
                *(
                    each if isinstance(each, str) else _clip_quotation(each, limits[each])
                    for each in self.parts
                ),
            ]
        )
        return line.replace("….", "…")


def _share_room(room: int, lengths: Sequence[int]) -> list[int]:
    """Share room out among texts of these lengths: what a short one leaves is the others'."""
    shares = dict.fromkeys(range(len(lengths)), 0)
    for left, place in zip(
        range(len(lengths), 0, -1), sorted(shares, key=lengths.__getitem__), strict=True
    ):
        shares[place] = min(lengths[place], -(-room // left))  # rounded up: one may just fit
        room -= shares[place]
    return list(shares.values())


class Headline(NamedTuple):
    """What is worst about an answer: plain text, its kind, and how many issues of each kind there
    are.
    """

    text: str
    kind: str
    counts: tuple[tuple[str, int], ...] = ()
    minor: bool = False
    """Whether the case counts as one where nothing was found: the line says that what there is is a
    lesser issue.
    """

    @property
    def tone(self) -> Tone:
        """How the line should feel."""
        return "calm" if self.minor else KINDS[self.kind].tone

    @property
    def others(self) -> str:
        """Count by kind what the line itself leaves unsaid; "" where it says everything."""
        left: list[str] = []
        for kind, count in self.counts:
            one, many, _ = KINDS[kind]
            if kind != self.kind and kind not in _NO_ISSUE:
                left.append(count_noun(count, one, many))
            elif count > 1 and kind not in _NO_ISSUE | _SAYS_HOW_MANY:
                left.append(count_noun(count - 1, f"more {one}", f"more {many}"))
        return " · ".join(left)


def standing(run: Run) -> Standing:
    """Return where a case stands that a run has audited, before anybody decides it; the database
    derives the same.
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


def headline(run: Run, longest: int = LONGEST_HEADLINE) -> Headline:
    """Return what is worst about the original answer of a run, in words with the words
    it is about.
    """
    original = run.original
    if run.termination_reason == "no_answer":
        why = next((reason.message for reason in run.review_reasons), "")
        return Headline(_Line((f"No answer. {why}".rstrip(),)).led_by(""), "no_answer")
    if original is None:
        why = next((warning.message for warning in reversed(run.warnings)), "")
        return Headline(
            _Line((f"Audit failed: {why}" if why else "The audit finished no iteration",)).led_by(
                ""
            ),
            "failed",
        )
    found = _lines_by_kind(original.citation_audit, original.claims, raised_issues(original))
    found |= _reasons(run, found)
    counts = tuple((kind, found[kind][1]) for kind in KINDS if kind in found)
    worst, count = counts[0] if counts else ("redundant", 0)
    if worst == "redundant":  # its marker in the answer says it
        return Headline(_confirmed_text(run, original), "nothing", counts)
    line, lead = found[worst][0], _lead(worst, count)
    if worst not in _LESSER or standing(run) != "nothing_found":
        return Headline(line.led_by(lead, longest), worst, counts)
    lesser = f"Lesser, {lead[:1].lower()}{lead[1:]}" if lead else "Lesser: "
    return Headline(line.led_by(lesser, longest), worst, counts, minor=True)


def _confirmed_text(run: Run, original: Iteration) -> str:
    """Say what was checked of an answer in which nothing was found; where no model
    judged, by what.
    """
    supported = sum(check.verified for check in original.claims)
    cited = sum(each.status == "valid" for each in original.citation_audit.citations)
    says = (
        [f"{supported:,} of {count_noun(len(original.claims), 'claim')} supported"]
        if original.claims
        else []
    )
    says += [count_noun(cited, "citation resolves", "citations resolve")] if cited else []
    offline = {model for role, model in run.models.items() if role != "drafter"} <= {OFFLINE}
    line = f"{'Offline checks: ' if offline else ''}{', '.join(says) or 'nothing found'}"
    return line[0].upper() + line[1:]


def raised_issues(iteration: Iteration) -> tuple[Issue, ...]:
    """Return the issues of an answer; a conflict that the critic names without raising it is one of
    severity low.
    """
    if any(each.rule == "source_conflict" for each in iteration.issues):
        return iteration.issues
    named = (
        Issue(
            id=f"conflict-{number}",
            key=f"conflict-{number}",
            source="critic",
            type="contradiction",
            rule="source_conflict",
            severity="low",
            description="The critic names sources that disagree. See whether the answer says so.",
            reason=conflict,
            suggestion="",
        )
        for number, conflict in enumerate(iteration.critique.conflicting_evidence, 1)
    )
    return (*iteration.issues, *named)


def worst_severity(original: Iteration) -> Severity | None:
    """Return the severity of the worst issue of an answer, None without one.

    What is no accusation (a claim not confirmed, a redundant citation) has none.
    """
    found = {
        each.severity
        for each in raised_issues(original)
        if KINDS[_headline_kind(each)].tone != "calm"
    }
    return next((each for each in SEVERITY if each in found), None)


def _lead(kind: str, count: int) -> str:
    """Return how the line of a kind begins where it doesn't speak for itself."""
    return f"{count_noun(count, *KINDS[kind][:2])}: " if kind == "uncited" else _LEADS.get(kind, "")


def found_in(
    audit: CitationAudit, claims: Sequence[ClaimCheck], issues: Sequence[Issue]
) -> dict[str, tuple[str, int]]:
    """Return each kind of issue found in an answer, the gravest first, with its line and how often
    it occurs.

    Words of the answer count once, under the gravest of what is wrong with them: what the critic
    says of a sentence goes with the first of its claims that fail, each of which is a fault. A step
    that has not come to its end yet gives nothing: an audit under way shows what it has found so
    far.
    """
    found = _lines_by_kind(audit, claims, issues)
    return {kind: (line.led_by(_lead(kind, count)), count) for kind, (line, count) in found.items()}


def _lines_by_kind(
    audit: CitationAudit, claims: Sequence[ClaimCheck], issues: Sequence[Issue]
) -> dict[str, tuple[_Line, int]]:
    by_kind: dict[str, list[_Line]] = {}
    # by sentence; empty: no words of it in particular
    accused: defaultdict[int, list[range]] = defaultdict(list)
    starts = [each.start for each in audit.sentences]
    lines: list[tuple[str, _Line, int | None, range]] = [
        (kind, text, None, range(0)) for kind, text in _problem_lines(audit, ())
    ]
    objections: dict[int | None, Issue] = {}
    again = {each for fault in about_same_words(issues) for each in _under_the_gravest(fault)}
    again_claimed = {
        (each.start, each.end)
        for each in again
        if each.source == "claims" and each.start is not None
    }
    counting = [each for each in claims if (each.claim.start, each.claim.end) not in again_claimed]
    for issue in issues:
        if (kind := _own_kind(issue)) and issue not in again:
            within = None if issue.start is None else bisect_right(starts, issue.start) - 1
            lines.append((kind, _issue_line(issue), within, range(0)))
            if kind in ("safety", "serious"):
                objections.setdefault(within, issue)
    unquoted = audit.model_copy(update={"quotes": ()})
    lines += [
        (
            kind,
            text,
            check.claim.sentence,
            range(check.claim.start or 0, (kind in _OF_A_CLAIM and check.claim.end) or 0),
        )
        for check in sorted(counting, key=lambda check: not _exact(check))
        for kind, text in _problem_lines(unquoted, (check,), objections)
    ]
    gravity = [*KINDS]
    for kind, text, sentence, words in sorted(lines, key=lambda each: gravity.index(each[0])):
        before = [] if sentence is None else accused[sentence]
        same = next(
            (
                each
                for each in before
                if not words or not each or (each.start < words.stop and words.start < each.stop)
            ),
            None,
        )
        if same is None:
            by_kind.setdefault(kind, []).append(text)
        if KINDS[kind].tone != "calm" and (same is None or (words and not same)):
            if same is not None:
                before.remove(same)
            before.append(words)
    found = {kind: (texts[0], len(texts)) for kind, texts in by_kind.items()}
    if fabricated := list(dict.fromkeys(audit.invalid_citations)):
        found["fabricated"] = _fabricated_line(audit, fabricated), len(audit.invalid_citations)
    if uncited := [
        each.text
        for place, each in enumerate(audit.sentences)
        if each.status == "uncited" and not accused[place]
    ]:
        found["uncited"] = _Line((Quotation(uncited[0]),)), len(uncited)
    if undecided := [
        check
        for check in counting
        if check.verdict == "unverifiable"
        and (check.claim.sentence is None or not accused[check.claim.sentence])
    ]:
        found["unconfirmed"] = _unconfirmed_line(undecided, len(claims)), len(undecided)
    if calculated := [
        check for check in counting if check.figures and check.verdict in _MAY_BE_CALCULATED
    ]:
        found["figure"] = _figures_line(calculated), sum(len(check.figures) for check in calculated)
    if tagged := [
        check for check in counting if check.marked and check.verdict in _MAY_BE_CALCULATED
    ]:
        found["marked"] = _tagged_line(tagged), sum(len(check.marked) for check in tagged)
    return {kind: found[kind] for kind in KINDS if kind in found}


_MAY_BE_CALCULATED = ("unverifiable", "supported", "unscored")
"""Verdicts beside which a figure that the evidence lacks, or a mark, is worth a line: the others
say what is wrong.
"""


def _figures_line(checks: Sequence[ClaimCheck]) -> _Line:
    """Return the line of the figures that the evidence lacks, with the words of the claim where
    they are of one.
    """
    figures = [
        _clean(figure.claim_text, LONGEST_VALUE) for check in checks for figure in check.figures
    ]
    says = describe_absent_figures(figures)
    return _Line(
        (f"{says}: ", Quotation(_claim_text(checks[0]), figures[0]))
        if len(checks) == 1
        else (says,)
    )


def _tagged_line(checks: Sequence[ClaimCheck]) -> _Line:
    """Return the line of the words that a tagger marks, with the words of the claim where they are
    of one.
    """
    words = [
        _clean(marked.claim_text, LONGEST_VALUE) for check in checks for marked in check.marked
    ]
    says = describe_marked_words(words)
    return _Line(
        (f"{says}: ", Quotation(_claim_text(checks[0]), words[0])) if len(checks) == 1 else (says,)
    )


def _under_the_gravest(fault: Sequence[Issue]) -> Sequence[Issue]:
    first, *others = sorted(fault, key=lambda each: [*KINDS].index(_headline_kind(each)))
    return others if first.start is None or _headline_kind(first) in _TAKES_ITS_WORDS else ()


def _reasons(run: Run, found: Collection[str]) -> Iterator[tuple[str, tuple[_Line, int]]]:
    """Yield what the reasons for review say beyond the issues."""
    accused = any(KINDS[kind].tone == "bad" for kind in found)
    for kind, codes in (
        ("reason", () if accused else MUST_LOOK),
        ("unscored", ("unscored",)),
        ("uncertified", _TOLD),
    ):
        if messages := [reason.message for reason in run.review_reasons if reason.code in codes]:
            yield kind, (_Line((messages[0].rstrip("."),)), len(messages))


_TOLD: tuple[ReviewCode, ...] = (
    "answer_refused",
    "answer_failed",
    "error",
    "cancelled",
    "language",
    "nothing_checked",
    "not_all_checked",
    "conflicting_evidence",
    "screening_draft",
    "judges_disagree",
    "critic_not_run",
)
"""Reasons that say something about this answer. A low score or a revision that nobody has read is
true of most.
"""


def _problem_lines(
    audit: CitationAudit,
    claims: Sequence[ClaimCheck],
    objections: Mapping[int | None, Issue] = MappingProxyType({}),
) -> Iterator[tuple[str, _Line]]:
    """Yield the kind and the line of what is wrong with quotations, claims and citations, as the
    answer has them.

    ``objections`` are the critic's, by sentence: where the words quoted don't show the
    contradiction, they say it.
    """
    for quote in audit.quotes:
        if quote.finding != "verbatim":
            says = _MISQUOTED[quote.finding].format(
                cited=_chunk_name(quote.evidence_id), other=_chunk_name(quote.found_in or "")
            )
            yield "misquoted", _Line((says, Quotation(quote.quote)))
    # those with both words come first: they can be checked at a glance
    for check in sorted(claims, key=lambda check: not _exact(check)):
        if check.verdict == "contradicted" or (
            check.verdict == "supported" and check.contradictions
        ):
            objection = (
                None if _shows_contradiction(check) else objections.get(check.claim.sentence)
            )
            yield (
                "contradicted",
                (_issue_line(objection, check) if objection else _contradicted_line(check)),
            )
        elif check.verdict == "unsupported":
            yield "unsupported", _unsupported_line(check)
        elif check.verdict == "partial":
            missing = next((check.claim.text[start:end] for start, end in check.uncovered), "")
            yield (
                "partial",
                _Line(("Supported only in part: ", Quotation(_claim_text(check), missing))),
            )
        for reference in check.references:
            cited = _chunk_name(reference.evidence_id)
            if reference.finding == "redundant":
                yield (
                    "redundant",
                    _Line(
                        (
                            f"{cited} adds nothing to the other citations of ",
                            Quotation(_claim_text(check)),
                        )
                    ),
                )
            elif reference.finding == "misattributed":
                better = f"; {_chunk_name(reference.better)} does" if reference.better else ""
                yield (
                    "misattributed",
                    _Line((f"{cited} doesn't support ", Quotation(_claim_text(check)), better)),
                )


_MISQUOTED = {
    "fabricated": "Quotes {cited} with words that no evidence holds: ",
    "spliced": "Quotes {cited} with words from several places: ",
    "other_document": "Quotes {cited}, but the words stand in {other}: ",
}


def _own_kind(issue: Issue) -> str:
    """Return the kind of an issue that neither citations nor claims say already; "" for
    the others.
    """
    if issue.source == "instructions":
        return "instruction"
    if issue.rule == "source_conflict":
        return "conflict"
    if issue.source == "critic":
        return "safety" if issue.type == "safety" else "serious" if issue.major else "lesser"
    return "missing" if issue.rule in ("missing_information", "dropped_content") else ""


_KIND_OF_RULE = {
    "fabricated_reference": "fabricated",
    "fabricated_quote": "misquoted",
    "spliced_quote": "misquoted",
    "quote_from_another_document": "misquoted",
    "contradicted_claim": "contradicted",
    "unsupported_claim": "unsupported",
    "misattributed_reference": "misattributed",
    "partly_supported_claim": "partial",
    "uncited_sentence": "uncited",
    "unscored_claim": "unscored",
    "unverifiable_claim": "unconfirmed",
    "redundant_reference": "redundant",
}


def _headline_kind(issue: Issue) -> str:
    return _own_kind(issue) or _KIND_OF_RULE.get(issue.rule, "uncertified")


def gravity(issue: Issue, check: ClaimCheck | None) -> tuple[int, bool]:
    """Return by what issues are sorted so that the one of the headline comes first; ``check`` is of
    its claim.
    """
    return [*KINDS].index(_headline_kind(issue)), check is not None and not _exact(check)


def _issue_line(issue: Issue, check: ClaimCheck | None = None) -> _Line:
    """Return the line of an issue; the critic's has the words of the answer and what the evidence
    says in their place.

    Of a long quotation it has the words at fault, which ``check``, that of the claim, names. Where
    it names none, or a single word, which alone says little, the critic's description says what is
    wrong. The claim is quoted where the issue quotes nothing.
    """
    if issue.rule == "source_conflict":  # the reason has both values, the description none
        return _Line((issue.reason.rstrip("."),))
    what = _quotable_words(issue.point or issue.description)
    if issue.source != "critic":
        return _Line((what,))
    says, quote = (
        _quotable_words(issue.reason),
        _quotable_words(issue.quote or (_claim_text(check) if check else "")),
    )
    if says and issue.evidence_ids and not any(each in says for each in issue.evidence_ids):
        says = f"{_chunk_name(issue.evidence_ids[0])}: {says}"
    quote = "" if quote.casefold() in what.casefold() else quote
    if quote and says and len(f"{what}{quote}{says}") > LONGEST_HEADLINE - LONGEST_LEAD:
        at_fault = (
            _quotable_words(each.claim_text) for each in (check.contradictions if check else ())
        )
        about = next((words for words in at_fault if " " in words and words in quote), "")
        if about or len(quote) <= LEAST_QUOTED:
            return _Line(("The answer says ", Quotation(quote, about), ". ", _bare(says)))
        return _Line((f"{_clip_text(what, LONGEST_DESCRIPTION)}. ", _bare(says)))
    parts: list[str | Quotation] = [_bare(what)]
    parts += [": ", Quotation(quote)] if quote else []
    parts += [". ", _bare(says)] if says else []
    return _Line(tuple(parts))


def _bare(words: str) -> Quotation:
    return Quotation(words, marks=("", ""), point=True)


def _fabricated_line(audit: CitationAudit, references: Sequence[str]) -> _Line:
    names = [f"[{_clean(each, 20)}]" for each in references]
    if len(names) > 2:
        return _Line(
            (f"Cites {names[0]}, {names[1]} and {len(names) - 2:,} more that don't exist",)
        )
    says = f"Cites {' and '.join(names)}, which {'doesn' if len(names) == 1 else 'don'}'t exist"
    cited = next((each for each in audit.citations if each.reference == references[0]), None)
    if len(names) == 2 or cited is None or cited.sentence is None:
        return _Line((says,))
    sentence = audit.sentences[cited.sentence]
    markers = [
        (each.marker_start - sentence.start, each.marker_end - sentence.start)
        for each in audit.citations
    ]
    markers = [each for each in markers if 0 <= each[0] < len(sentence.text)]
    before = _without_markers(sentence.text[: max(cited.marker_start - sentence.start, 0)], markers)
    # what the marker stands behind is what it is to prove
    return _Line(
        (
            f"{says}: ",
            Quotation(
                _without_markers(sentence.text, markers),
                " ".join(_quotable_words(before).split()[-3:]),
            ),
        )
    )


def _exact(check: ClaimCheck) -> bool:
    return any(_are_short_values(each) for each in check.contradictions)


def _are_short_values(each: Contradiction) -> bool:
    """Whether both words are figures, dates or names that one line holds side by side."""
    return (
        each.kind not in ("stated", "source")
        and len(each.claim_text) <= LONGEST_VALUE
        and len(each.evidence_text) <= LONGEST_VALUE
    )


def _clearest(check: ClaimCheck) -> Contradiction | None:
    """Return the contradiction of a claim that shows most; None where none is named."""
    between = sorted(
        check.contradictions, key=lambda each: (not each.evidence_text, -each.strength)
    )
    return next(
        (each for each in between if _are_short_values(each)), between[0] if between else None
    )


def _shows_contradiction(check: ClaimCheck) -> bool:
    """Whether the words of both sides, held side by side, show how they contradict each other."""
    first = _clearest(check)
    if first is None:
        return False
    claim, mine, theirs = (
        _quotable_words(each)
        for each in (_claim_text(check), first.claim_text, first.evidence_text)
    )
    return _are_short_values(first) or bool(theirs and _differing_words(claim, mine, theirs))


def _contradicted_line(check: ClaimCheck) -> _Line:
    first = _clearest(check)
    if first is None:
        who = _chunk_name(check.sources[0]) if check.sources else "The evidence"
        return _Line((f"{who} contradicts ", Quotation(_claim_text(check))))
    who, theirs = _chunk_name(first.evidence_id), _quotable_words(first.evidence_text)
    mine = _clean(first.claim_text, LONGEST_VALUE)
    if not theirs:
        return _absent_line(mine, _claim_text(check))
    if _are_short_values(first):
        return _Line((f"{who} has {theirs} where the answer has {mine}",))
    claim = _quotable_words(_claim_text(check))
    mine = _quotable_words(first.claim_text)
    whole, about = claim if mine in claim else mine, _differing_words(claim, mine, theirs)
    ours = Quotation(whole, mine if mine != whole else _differing_words(theirs, theirs, whole))
    if first.kind == "source":
        return _Line(
            (
                f"The source of {who}, ",
                Quotation(theirs, about, point=not about),
                ", contradicts ",
                ours,
            )
        )
    return _Line((f"{who} contradicts ", ours, ": ", Quotation(theirs, about, point=not about)))


def _unsupported_line(check: ClaimCheck) -> _Line:
    missing = [
        text
        for start, end in check.uncovered
        if (text := _clean(check.claim.text[start:end], LONGEST_VALUE))
    ]
    return (
        _absent_line(missing[0], _claim_text(check))
        if missing
        else _Line(("No evidence supports ", Quotation(_claim_text(check))))
    )


def _absent_line(words: str, claim: str) -> _Line:
    return _Line((f"{words} isn't in the evidence: ", Quotation(claim, words)))


def _unconfirmed_line(undecided: Sequence[ClaimCheck], total: int) -> _Line:
    why = next((check.abstained for check in undecided if check.abstained), None)
    offline = all(check.judged_by == OFFLINE for check in undecided)
    because = {
        "language": "language",
        "instruction": "evidence instructs",
        "limits": "over the limits",
        "quotation": "no quotation that holds",
        "either_way": "can be read either way",
    }
    reason = because[why] if why else "offline" if offline else ""
    claims = f"{len(undecided):,} of {total:,} {'claim' if total == 1 else 'claims'} not confirmed"
    return _Line((f"{claims}: {reason}" if reason else claims,))


def _claim_text(check: ClaimCheck) -> str:
    """Return the words of a claim without the citation markers among them."""
    return _without_markers(check.claim.text, check.claim.markers)


def _without_markers(text: str, markers: Iterable[tuple[int, int]]) -> str:
    at, kept = 0, []
    for start, end in sorted(markers):
        kept.append(text[at : max(start, at)])
        at = max(at, end)
    return "".join([*kept, text[at:]])


_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]+"
)
"""Control characters, and those that turn the direction of the line that they stand in."""


LONGEST_TEXT = 2_000
"""Characters of a text from outside that are looked at."""


def _clean(text: str, longest: int) -> str:
    """Return text from outside as one line of visible characters."""
    return shorten(" ".join(_UNSEEN.sub(" ", text[:LONGEST_TEXT]).split()), longest)


def _chunk_name(name: str) -> str:
    short = _clean(name, LONGEST_ID)
    return f"[{short}]" if name.isdigit() else short  # a bare number would read as a count


def _quotable_words(words: str) -> str:
    """Return words to quote as one line, without blanks before signs and the stop at the end."""
    return re.sub(r"\s+([.,;:!?])", r"\1", _clean(words, LONGEST_TEXT)).rstrip(" .,;:")


def _clip_quotation(quotation: Quotation, longest: int) -> str:
    """Return at most so many characters of a quotation, so cut that the words it is about stand in
    them.
    """
    opens, closes = quotation.marks
    return f"{opens}{_window(_quotable_words(quotation.words), quotation.about, longest)}{closes}"


def _window(text: str, about: str, longest: int) -> str:
    at = max(text.find(about), 0)
    if len(text) <= longest or at + len(about) < longest:
        return _clip_text(text, longest)
    lead = max(0, min(max(LED_IN, longest - 1 - (len(text) - at)), longest - len(about) - 2))
    start = text.find(" ", at - lead - 1, at) + 1 or at
    return f"…{_clip_text(text[start:], longest - 1)}" if start else _clip_text(text, longest)


def _clip_text(text: str, longest: int) -> str:
    """Return a text of at most so many characters, cut between words where it has any."""
    if len(text) <= longest:
        return text
    words, _, rest = text[:longest].rpartition(" ")
    return f"{words.rstrip(' .,;:')}…" if len(rest) < longest / 2 else shorten(text, longest)


_WORD = re.compile(r"\S+")
ALIKE = 0.35
"""Share of a claim's words that the evidence must have, so that what it has in place of the others
says anything.
"""


def _comparable_words(words: Sequence[re.Match[str]]) -> list[str]:
    return [_comparable(each.group()) for each in words]


@lru_cache(maxsize=16_384)  # few words are rare, and a page has many headlines
def _comparable(word: str) -> str:
    """Return a word without what only sets it off; brackets around a figure and signs may mean
    something.
    """
    key = quotation_key(word).strip(",;:?").rstrip(".")
    if any(map(str.isdigit, key)):
        return key
    return (key.lower() if key.istitle() else key).strip("().!")


def _differing_words(claim: str, mine: str, evidence: str) -> str:
    """Return the words of the evidence that stand where the claim has its own; "" where the two
    don't differ.

    Of several places one with a figure or a negation is taken: how else the two are put says less.
    """
    ours, theirs = (list(_WORD.finditer(text)) for text in (claim, evidence))
    at = claim.find(mine)
    own = [at < each.end() and each.start() < at + len(mine) for each in ours]
    compared = SequenceMatcher(
        None, _comparable_words(ours), _comparable_words(theirs), autojunk=False
    )
    changes = [
        (any(own[first:last]), _decides(theirs[start:end]), kind == "replace", -start, end)
        for kind, first, last, start, end in compared.get_opcodes()
        if kind in ("replace", "insert")
    ]
    alike = sum(each.size for each in compared.get_matching_blocks())
    if not changes or alike < ALIKE * len(ours):
        return ""
    *_, start, end = max(changes)
    return evidence[theirs[-start].start() : theirs[end - 1].end()]


_DECIDING = re.compile(
    r"\d|\b(?:no|not|never|none|neither|nor|without|cannot)\b|n['’]t\b", re.IGNORECASE
)


def _decides(words: Sequence[re.Match[str]]) -> bool:
    return any(_DECIDING.search(each.group()) for each in words)
