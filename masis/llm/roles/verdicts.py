"""A model's verdicts on a batch of claims, matched to the claims and held against the evidence they name.

Verdicts go by the claim's number: a missing one leaves its claim unscored, the last one on a number binds,
one on a number that was not given is left out. A verdict that credits the evidence must name a chunk of it that does;
one that denies support can't give more of it than half.
"""

from __future__ import annotations

import logging
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, get_args

from masis.audit.markers import index_of
from masis.audit.measures.scores import normalised
from masis.audit.text.quotes import located, located_parts
from masis.errors import StepError
from masis.llm.roles.prompting import rearmed
from masis.llm.roles.replies import Passage, Stance, Verdict
from masis.llm.roles.tolerances import chunk_names
from masis.schema.audit import Claim, ClaimCheck, Contradiction, Quote, ReferenceCheck, ReferenceFinding
from masis.schema.base import Unscored
from masis.schema.case import ClaimVerdict, Evidence

log = logging.getLogger(__name__)

UNSUPPORTED_MOST = 0.5
"""The support that an unsupported or contradicted claim can have, whatever number came with the verdict."""
RAW_MOST = 4_000
ALL = "all"
"""What a verdict calls the chunks together."""
_NONE = Unscored(reason="the verifier gave no verdict on this claim", code=StepError.code)
_SCORE: dict[Stance, float] = {"supports": 1.0, "partly": 0.5, "contradicts": 1.0}
_STANCES: dict[str, Stance] = {word: word for word in get_args(Stance)}
_VERDICTS: dict[str, ClaimVerdict] = {word: word for word in get_args(ClaimVerdict) if word != "unscored"}


class Chunks:
    """The evidence of a case, by what a model calls it: an id that names none, and words that none has, don't count."""

    def __init__(self, evidence: Sequence[Evidence]) -> None:
        self.texts = {chunk.id: chunk.text for chunk in evidence}
        self.sources = {chunk.id: chunk.source or "" for chunk in evidence}
        self._index = index_of(tuple(chunk.id for chunk in evidence), tuple(chunk.source for chunk in evidence))

    @property
    def readable(self) -> bool:
        """Whether any chunk has text."""
        return any(text.strip() for text in self.texts.values())

    def id_of(self, name: str) -> str | None:
        """The id that a model means: to the letter, in brackets, in other case, by its number; None for no chunk."""
        found = (self._index.resolve(written).evidence_id for written in chunk_names(rearmed(name)))
        return next(filter(None, found), None)

    def ids_of(self, names: Iterable[str]) -> tuple[str, ...]:
        """The ids that these names mean, each once, without those that mean none."""
        return tuple(dict.fromkeys(found for name in names if (found := self.id_of(name)) is not None))

    def quotes(self, evidence_id: str, words: str, score: float) -> tuple[Quote, ...]:
        """Where the chunk says these words, a record for each part of a quote with dots; empty where it does not."""
        text = self.texts[evidence_id]
        return tuple(
            Quote(evidence_id=evidence_id, start=start, end=end, text=text[start:end], score=score)
            for start, end in located_parts(words, text)
        )


class Judged(NamedTuple):
    """A claim's check, and what the verifier said of each chunk it spoke of."""

    check: ClaimCheck
    stances: Mapping[str, Stance] = {}


def judged(
    claims: Mapping[int, Claim],
    verdicts: Sequence[Verdict],
    chunks: Chunks,
    judged_by: str,
    numbers: Iterable[int] | None = None,
) -> tuple[Judged, ...]:
    """One for each claim, in their order; ``claims`` are by the numbers that the verdicts name them by.

    ``numbers`` are those of all claims that the verdicts may name, where ``claims`` are a part of them.
    """
    by_number = _by_number(verdicts, frozenset(claims if numbers is None else numbers))
    surplus = len(verdicts) - len(by_number.keys() & claims.keys())
    if surplus:
        log.info("%d verdicts for %d claims: %d are left out", len(verdicts), len(claims), surplus)
    return tuple(
        _judged(claim, by_number[number], chunks, judged_by)
        if number in by_number
        else unscored(claim, _NONE, judged_by)
        for number, claim in claims.items()
    )


def _by_number(verdicts: Sequence[Verdict], numbers: frozenset[int]) -> dict[int, Verdict]:
    """Return the verdicts by the numbers of their claims.

    A model that counts from 0 numbers as many verdicts as there are claims, each one lower: read as such. Where there
    is a verdict on 0 and not all claims have one, nothing says which claim a number means, and none is believed: a
    verdict on the claim before it would confirm what nobody judged.
    """
    found = {number: verdict for verdict in verdicts if (number := number_of(verdict.number)) is not None}
    if 0 not in found or 0 in numbers or numbers <= found.keys():
        return found
    counted_from_0 = {number - 1 for number in numbers} == found.keys()
    return {number + 1: verdict for number, verdict in found.items()} if counted_from_0 else {}


def failed(batch: Sequence[Claim], error: StepError, judged_by: str) -> tuple[Judged, ...]:
    """The claims of a batch that no verdicts came for."""
    why = Unscored.of(error)
    return tuple(unscored(claim, why, judged_by) for claim in batch)


def of_passages(found: Judged, share: float) -> Judged:
    """What holds where the verifier read that share of the evidence: its silence says nothing of the rest."""
    stances = {chunk: stance for chunk, stance in found.stances.items() if stance != "silent"}
    check = found.check
    if check.verdict == "unsupported":
        issue = f"None of the passages that were read supports this ({share:.0%} of the evidence)."
        check = check.model_copy(update={"verdict": "unverifiable", "support": None, "issue": issue})
    return Judged(check, stances)


def unverifiable(claims: Sequence[Claim], judged_by: str) -> tuple[Judged, ...]:
    """Claims where no chunk has text: there is nothing to ask a model about."""
    issue = "There is nothing to check this against."
    return tuple(_undecided(claim, "unverifiable", issue, judged_by) for claim in claims)


def unscored(claim: Claim, why: Unscored, judged_by: str) -> Judged:
    """A claim without a verdict."""
    return _undecided(claim, "unscored", f"{why.reason[:1].upper()}{why.reason[1:]}.", judged_by, why)


def _undecided(claim: Claim, verdict: ClaimVerdict, issue: str, judged_by: str, why: Unscored | None = None) -> Judged:
    check = ClaimCheck(
        claim=claim, verdict=verdict, support=None, confidence=None, issue=issue, judged_by=judged_by, unscored=why
    )
    return Judged(check)


def number_of(given: object) -> int | None:
    """A number as a model may write it: 2, 2.0, "2"; None for what is none."""
    if isinstance(given, str) and given.strip().isdecimal() and len(given) < 10:
        return int(given)
    if isinstance(given, bool) or not isinstance(given, int | float) or given != given // 1:
        return None
    return int(given)


def _judged(claim: Claim, given: Verdict, chunks: Chunks, judged_by: str) -> Judged:
    word = _VERDICTS.get(str(given.verdict))
    stances = _stances(word, given, chunks)
    if word is None:
        return unscored(claim, _without(given, "the verifier's word is no verdict"), judged_by)
    credited = {"supports", "partly"} & set(stances.values())
    if word in ("supported", "partial") and not credited and not (word == "supported" and _all_silent(given, stances)):
        why = "the verifier credits the evidence but names no chunk that supports the claim"
        return unscored(claim, _without(given, why), judged_by)
    quotes, unquoted = _quotes(given, stances, chunks)
    contradictions = tuple(
        found for passage in given.evidence if (found := _contradiction(claim, passage, chunks, given))
    )
    return Judged(
        ClaimCheck(
            claim=claim,
            verdict=word,
            support=_support(word, given),
            confidence=normalised("confidence", given.confidence).value,
            sources=tuple(chunk for chunk, stance in stances.items() if stance in _SOURCES.get(word, ())),
            quotes=quotes,
            contradictions=contradictions if word == "contradicted" else (),
            issue=_issue(word, given, unquoted),
            steps=given.reasoning.strip() if word == "supported" else "",
            judged_by=judged_by,
        ),
        stances,
    )


def _all_silent(given: Verdict, stances: Mapping[str, Stance]) -> bool:
    """Whether the verdict says of all chunks that they are silent: what supports "The sources give no price"."""
    silent = (each.evidence_id for each in given.evidence if each.stance == "silent")
    return any(name.strip().casefold() == ALL for name in silent) and set(stances.values()) <= {"silent"}


def _without(given: Verdict, reason: str) -> Unscored:
    return Unscored(reason=reason, code=StepError.code, raw=given.model_dump_json()[:RAW_MOST])


def _stances(word: ClaimVerdict | None, given: Verdict, chunks: Chunks) -> dict[str, Stance]:
    """What the verdict says of each chunk; where it speaks of one twice, the later word binds.

    A chunk whose passages each support a part supports the claim, if no other is needed for a claim that is supported.
    """
    found: dict[str, Stance] = {}
    for passage in given.evidence:
        chunk, stance = chunks.id_of(passage.evidence_id), _STANCES.get(str(passage.stance))
        if chunk is not None and stance is not None:
            found[chunk] = stance
    crediting = [chunk for chunk, stance in found.items() if stance in ("supports", "partly")]
    if word == "supported" and len(crediting) == 1:
        found[crediting[0]] = "supports"
    return found


def _support(word: ClaimVerdict, given: Verdict) -> float | None:
    support = normalised("support", given.support).value
    if word == "unverifiable" or support is None:
        return None
    return min(support, UNSUPPORTED_MOST) if word in ("unsupported", "contradicted") else support


def _quotes(given: Verdict, stances: Mapping[str, Stance], chunks: Chunks) -> tuple[tuple[Quote, ...], list[str]]:
    """The quotes that stand in their chunks, and the chunks that don't say what is quoted from them."""
    found: dict[tuple[str, int, int], Quote] = {}
    unquoted = []
    for passage in given.evidence:
        chunk = chunks.id_of(passage.evidence_id)
        stance = stances.get(chunk) if chunk else None
        if chunk is None or stance is None or stance == "silent":
            continue
        quotes = chunks.quotes(chunk, passage.quote, _SCORE[stance])
        found.update({(quote.evidence_id, quote.start, quote.end): quote for quote in quotes})
        if passage.quote.strip() and not quotes and located(passage.quote, chunks.sources[chunk]) is None:
            unquoted.append(chunk)
    return tuple(found.values()), unquoted


def _contradiction(claim: Claim, passage: Passage, chunks: Chunks, given: Verdict) -> Contradiction | None:
    """The two places that contradict each other; None unless claim and chunk both have the words.

    A model is shown the line that names a chunk's source, and may find the contradiction there.
    """
    chunk = chunks.id_of(passage.evidence_id)
    if chunk is None or _STANCES.get(str(passage.stance)) != "contradicts":
        return None
    mine = located(passage.claim_words, claim.text, claim.markers)
    theirs = located(passage.quote, chunks.texts[chunk])
    in_source = _in_source(claim, passage, chunk, chunks, given)
    if mine is None or (theirs is None and not in_source):
        return None
    start, end = (0, 0) if in_source or theirs is None else (theirs.start, theirs.end)
    sure = normalised("confidence", given.confidence).value
    return Contradiction(
        kind="source" if in_source else "stated",
        claim_start=mine.start,
        claim_end=mine.end,
        claim_text=claim.text[mine.start : mine.end],
        evidence_id=chunk,
        evidence_start=start,
        evidence_end=end,
        evidence_text=chunks.sources[chunk] if in_source else chunks.texts[chunk][start:end],
        reason=given.reasoning.strip(),
        strength=1.0 if sure is None else sure,
    )


_NAME = re.compile(r"[^\W\d_][\w'’-]{2,}|\d+")


def _in_source(claim: Claim, passage: Passage, chunk: str, chunks: Chunks, given: Verdict) -> bool:
    """Return whether what contradicts a claim stands in the line that names the chunk's source.

    It does where the model quotes that line, or where the words quoted from the text have nothing of the claim nor of
    the model's reason, and the reason has a name of that line that neither the text nor the claim has.
    """
    text, source = chunks.texts[chunk], chunks.sources[chunk]
    if located(passage.quote, text) is None:
        return located(passage.quote, source) is not None
    spoken_of = f"{claim.text} {given.reasoning}".casefold()
    if set(_NAME.findall(passage.quote.casefold())) & set(_NAME.findall(spoken_of)):
        return False
    named = {each for each in _NAME.findall(source) if each[0].isupper() or each[0].isdigit()}
    elsewhere = f"{text} {claim.text}".casefold()
    return any(each.casefold() not in elsewhere for each in named & set(_NAME.findall(given.reasoning)))


_SOURCES: dict[ClaimVerdict, tuple[Stance, ...]] = {
    **dict.fromkeys(("supported", "partial"), ("supports", "partly")),
    "contradicted": ("contradicts",),
}
"""What a chunk must say to be a source of the verdict."""


def _issue(word: ClaimVerdict, given: Verdict, unquoted: Sequence[str]) -> str | None:
    parts = []
    if word != "supported":
        parts.append(given.reasoning.strip())
    if unquoted:
        parts.append(f"The words quoted from {', '.join(dict.fromkeys(unquoted))} are not there.")
    return " ".join(filter(None, parts)) or None


# Whether each reference of a sentence supports it, from what the verifier said about the chunks.
#
# A sentence may be judged in several claims: one chunk then supports one of them, another chunk another, and neither is
# redundant. So each reference is judged once a sentence, and recorded with the claim it has most to do with.

_CLOSEST: tuple[Stance | None, ...] = ("supports", "contradicts", "partly", "silent", None)
"""Which of several stances on the claims of a sentence tells most of a reference."""


def with_references(judged: Sequence[Judged], chunks: Chunks) -> tuple[ClaimCheck, ...]:
    """The checks, with what can be said of the references of their sentences."""
    sentences: dict[object, list[int]] = defaultdict(list)
    for at, each in enumerate(judged):
        number = each.check.claim.sentence
        sentences[("alone", at) if number is None else number].append(at)
    found: dict[int, list[ReferenceCheck]] = defaultdict(list)
    for members in sentences.values():
        group = [judged[at] for at in members]
        for cited in dict.fromkeys(chunk for each in group for chunk in each.check.claim.cited):
            found[members[_owner(cited, group)]].append(_reference(cited, group, chunks))
    return tuple(
        each.check.model_copy(update={"references": tuple(found[at])}) if at in found else each.check
        for at, each in enumerate(judged)
    )


def _owner(cited: str, group: Sequence[Judged]) -> int:
    """The place in the group of the claim that the reference has most to do with."""
    citing = [at for at, each in enumerate(group) if cited in each.check.claim.cited]
    return min(citing, key=lambda at: (_CLOSEST.index(group[at].stances.get(cited)), at))


def _reference(cited: str, group: Sequence[Judged], chunks: Chunks) -> ReferenceCheck:
    def finding(
        name: ReferenceFinding, support: float | None, reason: str, better: str | None = None
    ) -> ReferenceCheck:
        return ReferenceCheck(evidence_id=cited, finding=name, support=support, reason=reason, better=better)

    if not chunks.texts.get(cited, "").strip():
        return finding("unchecked", None, "This chunk has no text to check against.")
    owner = group[_owner(cited, group)]
    stances = {each.stances.get(cited) for each in group}
    if "supports" in stances:
        return finding("supports", owner.check.support, "It supports this.")
    if "contradicts" in stances:
        return finding("contradicts", 0.0, owner.check.issue or "It contradicts this.")
    if others := _others_suffice(cited, group):
        return finding("redundant", 0.0, f"{' and '.join(others)} support this without it.")
    if "partly" in stances:
        return finding("partly_supports", owner.check.support, "It supports part of this.")
    if stances == {None} or any(each.check.verdict == "unscored" for each in group):
        return finding("unchecked", None, "The verifier did not say whether it supports this.")
    if better := _better(group):
        return finding("misattributed", 0.0, f"{cited} does not support this; {better} does.", better)
    return finding("unsupported", 0.0, "It does not support this.")


def _others_suffice(cited: str, group: Sequence[Judged]) -> tuple[str, ...]:
    """Return the other cited chunks that support every claim of the sentence whole; empty where they don't."""
    bearing: list[str] = []
    for each in group:
        others = [c for c in each.check.claim.cited if c != cited and each.stances.get(c) == "supports"]
        if not others:
            return ()
        bearing.extend(others[:1])
    return tuple(dict.fromkeys(bearing))


def _better(group: Sequence[Judged]) -> str | None:
    """Return a chunk that the sentence doesn't cite and that supports a claim of it that nothing cited supports."""
    for each in group:
        cited = each.check.claim.cited
        if each.check.verdict != "supported" or any(each.stances.get(c) in ("supports", "partly") for c in cited):
            continue
        for chunk, stance in each.stances.items():
            if stance == "supports" and chunk not in cited:
                return chunk
    return None
