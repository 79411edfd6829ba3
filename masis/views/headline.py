"""One line that says what is worst about the original answer of an audited case, and counts of all issues. Pure.

The line quotes the answer and the evidence, which come from outside: show it as text or through ``markdown.escaped``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from masis.schema.audit import CitationAudit, ClaimCheck, Contradiction, Issue
from masis.schema.calls import Replayed
from masis.schema.review import Standing
from masis.schema.run import MUST_LOOK, ReviewCode, Run
from masis.schema.wording import shortened
from masis.settings import OFFLINE
from masis.views.words import Tone

LONGEST_HEADLINE = 140
"""Characters of a headline: what a row of the queue shows in two lines at 1440 pixels."""

LONGEST_VALUE, LONGEST_ID = 40, 30
LED_IN = 25
"""Characters of a quotation before the words it is about: where a narrow row cuts the line, they still stand in it."""


class Kind(NamedTuple):
    """A kind of issue: how one and many of them are counted, and how grave it feels."""

    one: str
    many: str
    tone: Tone


KINDS: dict[str, Kind] = {
    "failed": Kind("failed audit", "failed audits", "warn"),
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
    "conflict": Kind("conflict between sources", "conflicts between sources", "warn"),
    "uncited": Kind("sentence without a citation", "sentences without a citation", "warn"),
    "lesser": Kind("lesser issue by the critic", "lesser issues by the critic", "warn"),
    "missing": Kind("missing point", "missing points", "warn"),
    "unscored": Kind("step without a result", "steps without a result", "calm"),
    "unconfirmed": Kind("claim not confirmed", "claims not confirmed", "calm"),
    "redundant": Kind("redundant citation", "redundant citations", "calm"),
    "uncertified": Kind("reason not to certify", "reasons not to certify", "calm"),
    "nothing": Kind("", "", "calm"),
}
"""Every kind of issue, the gravest first: the first that occurs makes the headline."""

_SAYS_HOW_MANY = frozenset({"uncited", "unscored", "unconfirmed"})
"""Kinds whose sentence counts them already."""

_NO_ISSUE = frozenset({"failed", "reason", "uncertified"})
"""Kinds that no issue of the answer is counted under."""


class Headline(NamedTuple):
    """What is worst about an answer: plain text, its kind, and how many issues of each kind there are."""

    text: str
    kind: str
    counts: tuple[tuple[str, int], ...] = ()

    @property
    def tone(self) -> Tone:
        """How the line should feel."""
        return KINDS[self.kind].tone

    @property
    def others(self) -> str:
        """Count by kind what the line itself leaves unsaid; "" where it says everything."""
        left = [
            (KINDS[kind], count)
            for kind, count in self.counts
            if kind not in _NO_ISSUE and (kind != self.kind or (count > 1 and kind not in _SAYS_HOW_MANY))
        ]
        return " · ".join(f"{count:,} {kind.one if count == 1 else kind.many}" for kind, count in left)


def standing(run: Run) -> Standing:
    """Return where a case stands that a run has audited, before anybody decides it; the database derives the same."""
    codes = {reason.code for reason in run.review_reasons}
    if not run.iterations and run.termination_reason == "cancelled":
        return "not_audited"
    if codes & MUST_LOOK:
        return "wrong"
    if "error" in codes or not run.iterations:
        return "failed"
    return "not_confirmed" if codes else "nothing_found"


def headline(run: Run) -> Headline:
    """Return what is worst about the original answer of a run, in words with the words it is about."""
    original = run.original
    if original is None:
        why = next((warning.message for warning in reversed(run.warnings)), "")
        return Headline(_line(f"Audit failed: {why}" if why else "The audit finished no iteration"), "failed")
    found = found_in(original.citation_audit, original.claims, original.issues)
    found |= _reasons(run, found)
    counts = tuple((kind, found[kind][1]) for kind in KINDS if kind in found)
    if not counts:
        return Headline(f"Nothing found by {_checks(run)}", "nothing")
    worst = counts[0][0]
    return Headline(found[worst][0], worst, counts)


def found_in(audit: CitationAudit, claims: Sequence[ClaimCheck], issues: Sequence[Issue]) -> dict[str, tuple[str, int]]:
    """Return each kind of issue found in an answer, the gravest first, with its line and how often it occurs.

    A sentence of the answer counts once, under the gravest of what is wrong with it: to a reader two of its claims that
    fail are one fault. A step that has not come to its end yet gives nothing: an audit under way shows what it has
    found so far.
    """
    by_kind: dict[str, list[str]] = {}
    accused: set[int] = set()
    lines: list[tuple[str, str, int | None]] = [(kind, text, None) for kind, text in _sentences(audit, (), issues)]
    unquoted = audit.model_copy(update={"quotes": ()})
    lines += [
        (kind, text, check.claim.sentence)
        for check in sorted(claims, key=lambda check: not _exact(check))
        for kind, text in _sentences(unquoted, (check,), ())
    ]
    gravity = [*KINDS]
    for kind, text, sentence in sorted(lines, key=lambda each: gravity.index(each[0])):
        if sentence is None or sentence not in accused:
            by_kind.setdefault(kind, []).append(text)
        if sentence is not None and KINDS[kind].tone != "calm":
            accused.add(sentence)
    found = {kind: (texts[0], len(texts)) for kind, texts in by_kind.items()}
    if fabricated := list(dict.fromkeys(audit.invalid_citations)):
        found["fabricated"] = _fabricated(fabricated), len(audit.invalid_citations)
    if uncited := [
        each.text for place, each in enumerate(audit.sentences) if each.status == "uncited" and place not in accused
    ]:
        sentences = "1 sentence" if len(uncited) == 1 else f"{len(uncited):,} sentences"
        found["uncited"] = _quoting(f"{sentences} without a citation: ", uncited[0]), len(uncited)
    if undecided := [
        check for check in claims if check.verdict == "unverifiable" and check.claim.sentence not in accused
    ]:
        found["unconfirmed"] = _unconfirmed(undecided, len(claims)), len(undecided)
    return {kind: found[kind] for kind in KINDS if kind in found}


def _reasons(run: Run, found: Collection[str]) -> Iterator[tuple[str, tuple[str, int]]]:
    """Yield what the reasons for review say beyond the issues."""
    accused = any(KINDS[kind].tone == "bad" for kind in found)
    for kind, codes in (("reason", () if accused else MUST_LOOK), ("unscored", ("unscored",)), ("uncertified", _TOLD)):
        if messages := [reason.message for reason in run.review_reasons if reason.code in codes]:
            yield kind, (_line(messages[0].rstrip(".")), len(messages))


_TOLD: tuple[ReviewCode, ...] = (
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
"""Reasons that say something about this answer. A low score or a revision that nobody has read is true of most."""


def _sentences(
    audit: CitationAudit, claims: Sequence[ClaimCheck], issues: Sequence[Issue]
) -> Iterator[tuple[str, str]]:
    """Yield the kind and the sentence of each issue that has words of its own, in the order of the answer."""
    for quote in audit.quotes:
        if quote.finding != "verbatim":
            says = _MISQUOTED[quote.finding].format(cited=_id(quote.evidence_id), other=_id(quote.found_in or ""))
            yield "misquoted", _quoting(says, quote.quote)
    # those with both words come first: they can be checked at a glance
    for check in sorted(claims, key=lambda check: not _exact(check)):
        if check.verdict == "contradicted" or (check.verdict == "supported" and check.contradictions):
            yield "contradicted", _contradicted(check)
        elif check.verdict == "unsupported":
            yield "unsupported", _unsupported(check)
        elif check.verdict == "partial":
            missing = next((check.claim.text[start:end] for start, end in check.uncovered), "")
            yield "partial", _quoting("Supported only in part: ", _words(check), about=missing)
        for reference in check.references:
            kind = {"misattributed": "misattributed", "redundant": "redundant"}.get(reference.finding, "")
            if kind:
                better = f"; {_id(reference.better)} does" if kind == "misattributed" and reference.better else ""
                yield kind, _quoting(f"{_id(reference.evidence_id)} doesn't support ", _words(check), better)
    for issue in issues:
        if kind := _kind_of(issue):
            yield kind, _issue_line(issue)


_MISQUOTED = {
    "fabricated": "Quotes {cited} with words that no evidence holds: ",
    "spliced": "Quotes {cited} with words from several places: ",
    "other_document": "Quotes {cited}, but the words stand in {other}: ",
}


def _kind_of(issue: Issue) -> str:
    """Return the kind of an issue that neither citations nor claims say already; "" for the others."""
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


def gravity(issue: Issue, check: ClaimCheck | None) -> tuple[int, bool]:
    """Return by what issues are sorted so that the one of the headline comes first; ``check`` is of its claim."""
    kind = _kind_of(issue) or _KIND_OF_RULE.get(issue.rule, "uncertified")
    return [*KINDS].index(kind), check is not None and not _exact(check)


def _issue_line(issue: Issue) -> str:
    if issue.rule == "source_conflict":  # the reason has both values, the description none
        return _line(f"Sources disagree: {issue.reason.rstrip('.')}")
    missing = issue.description.removeprefix("Missing information: ").rstrip(".")
    return _line(f"Leaves out: {missing}" if issue.rule == "missing_information" else missing)


def _fabricated(references: Sequence[str]) -> str:
    names = [f"[{_clean(each, 20)}]" for each in references]
    if len(names) == 1:
        return f"Cites {names[0]}, which doesn't exist"
    if len(names) == 2:
        return f"Cites {names[0]} and {names[1]}, which don't exist"
    return f"Cites {names[0]}, {names[1]} and {len(names) - 2:,} more that don't exist"


def _exact(check: ClaimCheck) -> bool:
    return any(_short(each) for each in check.contradictions)


def _short(each: Contradiction) -> bool:
    """Whether both words are figures, dates or names that one line holds side by side."""
    return each.kind != "stated" and len(each.claim_text) <= LONGEST_VALUE and len(each.evidence_text) <= LONGEST_VALUE


def _contradicted(check: ClaimCheck) -> str:
    between = sorted(check.contradictions, key=lambda each: (not each.evidence_text, -each.strength))
    first = next((each for each in between if _short(each)), between[0] if between else None)
    if first is None:
        who = _id(check.sources[0]) if check.sources else "The evidence"
        return _quoting(f"{who} contradicts ", _words(check))
    mine, theirs = _clean(first.claim_text, LONGEST_VALUE), _clean(first.evidence_text, LONGEST_TEXT).rstrip(" .,;:")
    if not theirs:
        return _absent(mine, _words(check))
    if _short(first) and check.verified:
        return _line(f"{_id(first.evidence_id)} has {theirs} where the answer has {mine}")
    if _short(first):
        return _line(f"{mine} stands in no evidence; {_id(first.evidence_id)} has {theirs}")
    claim = _plain(_words(check))
    around = _window(claim, mine, LONGEST_VALUE) if mine in claim else mine
    return _quoting(f"{_id(first.evidence_id)} contradicts “{around}”: ", theirs, about=_differing(claim, mine, theirs))


def _unsupported(check: ClaimCheck) -> str:
    missing = [text for start, end in check.uncovered if (text := _clean(check.claim.text[start:end], LONGEST_VALUE))]
    return _absent(missing[0], _words(check)) if missing else _quoting("No evidence supports ", _words(check))


def _absent(words: str, claim: str) -> str:
    return _quoting(f"{words} stands in no evidence: ", claim, about=words)


def _unconfirmed(undecided: Sequence[ClaimCheck], total: int) -> str:
    why = next((check.abstained for check in undecided if check.abstained), None)
    offline = all(check.judged_by == OFFLINE for check in undecided)
    because = {"language": "language", "instruction": "evidence instructs", "limits": "over the limits"}
    reason = because[why] if why else "offline" if offline else ""
    claims = f"{len(undecided):,} of {total:,} {'claim' if total == 1 else 'claims'} not confirmed"
    return f"{claims}: {reason}" if reason else claims


def _checks(run: Run) -> str:
    """Name the checks that found nothing: the models', or the offline ones."""
    for role, model in run.models.items():
        asked = model.removeprefix(f"{OFFLINE},")
        if role == "drafter" or asked == OFFLINE:
            continue
        replayed = Replayed.of(asked)
        name = replayed.model if replayed else asked
        return f"the checks of {_clean(name.rpartition(':')[2] or asked, LONGEST_VALUE)}"
    return "the offline checks"


def _words(check: ClaimCheck) -> str:
    """Return the words of a claim without the citation markers among them."""
    text, at, kept = check.claim.text, 0, []
    for start, end in sorted(check.claim.markers):
        kept.append(text[at:start])
        at = max(at, end)
    return "".join([*kept, text[at:]])


_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]+")
"""Control characters, and those that turn the direction of the line that they stand in."""


LONGEST_TEXT = 2_000
"""Characters of a text from outside that are looked at."""


def _clean(text: str, longest: int) -> str:
    """Return text from outside as one line of visible characters."""
    return shortened(" ".join(_UNSEEN.sub(" ", text[:LONGEST_TEXT]).split()), longest)


def _id(name: str) -> str:
    return _clean(name, LONGEST_ID)


def _line(text: str) -> str:
    return _clean(text, LONGEST_HEADLINE)


def _plain(words: str) -> str:
    """Return words to quote as one line, without blanks before signs and the stop at the end."""
    return re.sub(r"\s+([.,;:!?])", r"\1", _clean(words, LONGEST_TEXT)).rstrip(" .,;:")


def _window(text: str, about: str, longest: int) -> str:
    """Return at most so many characters of a text, so cut that the words it is quoted for stand in it."""
    at = max(text.find(about), 0)
    if len(text) <= longest or at + len(about) < longest:
        return _cut(text, longest)
    lead = max(0, min(LED_IN, longest - len(about) - 2))
    start = text.find(" ", at - lead - 1, at) + 1 or at
    return f"…{_cut(text[start:], longest - 1)}" if start else _cut(text, longest)


def _cut(text: str, longest: int) -> str:
    """Return a text of at most so many characters, cut between words where it has any."""
    if len(text) <= longest:
        return text
    words, _, rest = text[:longest].rpartition(" ")
    return f"{words.rstrip(' .,;:')}…" if len(rest) < longest / 2 else shortened(text, longest)


_WORD = re.compile(r"\S+")


def _compared(words: Sequence[re.Match[str]]) -> list[str]:
    return [each.group().strip(".,;:!?()“”\"'").casefold() for each in words]


def _differing(claim: str, mine: str, evidence: str) -> str:
    """Return the words of the evidence that stand where the claim has its own; "" where the two don't differ."""
    ours, theirs = (list(_WORD.finditer(text)) for text in (claim, evidence))
    at = claim.find(mine)
    own = [at < each.end() and each.start() < at + len(mine) for each in ours]
    compared = SequenceMatcher(None, _compared(ours), _compared(theirs), autojunk=False)
    changes = [
        (any(own[first:last]), kind == "replace", -start, end)
        for kind, first, last, start, end in compared.get_opcodes()
        if kind in ("replace", "insert")
    ]
    if not changes:
        return ""
    *_, start, end = max(changes)
    return evidence[theirs[-start].start() : theirs[end - 1].end()]


def _quoting(before: str, words: str, after: str = "", about: str = "") -> str:
    """Return a sentence of ours with as many of the words, in quotation marks, as the line still holds.

    ``about`` are those of them that the line is about: of long words, a window around these is quoted.
    """
    left = max(LONGEST_HEADLINE - len(before) - len(after) - 2, 20)
    return f"{before}“{_window(_plain(words), about, left)}”{after}"
