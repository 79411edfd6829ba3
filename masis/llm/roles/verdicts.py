"""Checks a model's verdicts on claims against the evidence that they cite.

A verdict counts only if code can confirm it. "supported" and "contradicted" need words that occur
in the quoted chunk, a calculation must give the stated result, and the model must be sure. If a
verdict can't be confirmed, ``ClaimJudgement.doubt`` gives the reason. The verifier then asks once
more, and the claim stays "not confirmed" if the second verdict is no better.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, get_args

from masis.audit.calculations import check_calculation, unknown_operands
from masis.audit.citations.hedges import hedges
from masis.audit.languages import is_function_word, negates
from masis.audit.markers import index_of
from masis.audit.markers.source_words import RESULT_WORD, SOURCE_WORD
from masis.audit.measures.scores import normalize_score
from masis.audit.text.quotes import locate_quote, located_parts
from masis.errors import StepError
from masis.llm.roles.prompting import rearm
from masis.llm.roles.replies import NumberedVerdict, QuotedPassage, Stance, Verdict
from masis.llm.roles.tolerances import chunk_names
from masis.schema.audit import (
    Claim,
    ClaimCheck,
    Contradiction,
    Quote,
    ReferenceCheck,
    ReferenceFinding,
)
from masis.schema.base import Unscored
from masis.schema.case import ClaimVerdict, Evidence
from masis.schema.wording import join_names

SURE_FROM = 0.65
"""The lowest confidence at which a verdict counts; it lies between "it can be read either way"
(0.5) and "it follows" (0.8).
"""
SILENT_FROM = 0.35
"""The same limit for "unsupported" and "partial", which only say that the evidence is silent."""
MAX_RAW = 4_000
MIN_WORDS, MIN_CHARACTERS = 2, 8
"""The words or characters that a quotation needs to count, unless it has a figure: "the" occurs in
every chunk.
"""
_NONE = Unscored(reason="the verifier gave no verdict on this claim", code=StepError.code)
_SUPPORT: dict[ClaimVerdict, float | None] = {
    "supported": 1.0,
    "partial": 0.5,
    "contradicted": 0.0,
    "unsupported": 0.0,
}
"""How far the evidence supports a claim with this verdict; None if the verdict doesn't say."""
_SCORE: dict[Stance, float] = {"supports": 1.0, "supports_together": 0.5, "contradicts": 1.0}
_STANCES: dict[str, Stance] = {word: word for word in get_args(Stance)}
_EITHER_WAY = "either_way"
_READ_IN_TWO_WAYS = "This, or the evidence, can be read in two ways."
_VERDICTS: dict[str, ClaimVerdict] = {
    **{word: word for word in get_args(ClaimVerdict) if word != "unscored"},
    _EITHER_WAY: "unverifiable",
}


class Chunks:
    """The evidence of a case, looked up by the names that a model uses for its chunks.

    Unknown ids and quotations that no chunk contains don't count.
    """

    def __init__(self, evidence: Sequence[Evidence]) -> None:
        self.texts = {chunk.id: chunk.text for chunk in evidence}
        self.sources = {chunk.id: chunk.source or "" for chunk in evidence}
        self._index = index_of(
            tuple(chunk.id for chunk in evidence), tuple(chunk.source for chunk in evidence)
        )

    @property
    def readable(self) -> bool:
        """Whether any chunk has text."""
        return any(text.strip() for text in self.texts.values())

    def id_of(self, name: str) -> str | None:
        """Return the id that a model means, or None if it matches no chunk.

        The name may be exact, in brackets, in another case, or the number of the chunk.
        """
        ids = (self._index.resolve(written).evidence_id for written in chunk_names(rearm(name)))
        return next(filter(None, ids), None)

    def ids_of(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the ids that these names refer to, without duplicates and unknown names."""
        return tuple(
            dict.fromkeys(
                evidence_id for name in names if (evidence_id := self.id_of(name)) is not None
            )
        )

    def quotes(self, evidence_id: str, words: str, score: float) -> tuple[Quote, ...]:
        """Return the passages of the chunk with these words; one for each part of a quote with
        an ellipsis.
        """
        text = self.texts[evidence_id]
        return tuple(
            Quote(evidence_id=evidence_id, start=start, end=end, text=text[start:end], score=score)
            for start, end in located_parts(words, text)
        )


class ClaimJudgement(NamedTuple):
    """The check of a claim, and the verifier's stance on each chunk that it mentioned.

    ``doubt`` explains in a sentence why the verdict can't count, for the model that judges the
    claim again; it is empty if the verdict counts. ``denies`` is true if the verifier spoke against
    the claim, whether or not that counts.
    """

    check: ClaimCheck
    stances: Mapping[str, Stance] = {}
    doubt: str = ""
    denies: bool = False


def judge(claim: Claim, reply: Verdict, chunks: Chunks, judged_by: str) -> ClaimJudgement:
    """Check a model's verdict on a claim against the evidence.

    Args:
        claim: The claim that was judged.
        reply: The model's verdict.
        chunks: The evidence of the case.
        judged_by: The name of the model.

    Returns:
        The check. With a ``doubt`` its verdict is ``unverifiable``, or ``unscored`` if the model's
        word isn't a verdict.

    """
    word = _VERDICTS.get(str(reply.verdict))
    if word is None:
        raw = reply.model_dump_json()[:MAX_RAW]
        reason = "the verifier's word is no verdict"
        return unscored_claim(
            claim, Unscored(reason=reason, code=StepError.code, raw=raw), judged_by
        )
    passages = [_LocatedPassage.of(passage, chunks) for passage in reply.evidence]
    denying = [passage for passage in passages if passage.stance == "contradicts" and passage.found]
    if denying and word in ("unsupported", "partial"):
        word = "contradicted"  # A passage that denies the claim counts, regardless of the verdict.
    denies = word == "contradicted" or any(passage.stance == "contradicts" for passage in passages)
    doubt = _doubt(word, claim, reply, passages, chunks)
    if doubt:
        check = _undecided_check(claim, "unverifiable", doubt, judged_by)
        return ClaimJudgement(
            check.model_copy(update={"abstained": "quotation"}), doubt=doubt, denies=denies
        )
    stances = _stances(word, passages)
    if word != "unverifiable" and not _is_sure(word, reply):
        return ClaimJudgement(_either_way(claim, reply, judged_by), stances, denies=denies)
    all_contradictions = [
        contradiction
        for passage in denying
        if (contradiction := _contradiction(claim, passage, chunks, reply)) is not None
    ]
    by_position = {
        (
            contradiction.evidence_id,
            contradiction.evidence_start,
            contradiction.evidence_end,
        ): contradiction
        for contradiction in reversed(all_contradictions)
    }
    contradictions = tuple(reversed(by_position.values()))  # the first at each position
    has_support = any(passage.credits and passage.found for passage in passages)
    check = ClaimCheck(
        claim=claim,
        verdict=word,
        support=_SUPPORT.get(word),
        confidence=normalize_score("confidence", reply.confidence).value,
        sources=tuple(
            chunk for chunk, stance in stances.items() if stance in _SOURCES.get(word, ())
        ),
        quotes=_found_quotes(passages),
        contradictions=contradictions if word in ("contradicted", "supported") else (),
        issue=_verdict_issue(word, reply, passages),
        steps=_steps(reply) if word == "supported" else "",
        judged_by=judged_by,
        sources_disagree=bool(contradictions) and has_support,
        abstained="either_way" if reply.verdict == _EITHER_WAY else None,
    )
    return ClaimJudgement(check, stances, denies=denies)


def merge_judgements(first: ClaimJudgement | None, second: ClaimJudgement) -> ClaimJudgement:
    """Return the second judgement of a claim, or the first if the second is unscored.

    If the model first spoke against a claim and then called it supported, it contradicted itself,
    so the claim is not confirmed.
    """
    if first is None:
        return second
    if second.check.verdict == "unscored":
        return first
    if first.denies and second.check.verdict == "supported":
        issue = (
            "The verifier first spoke against this and then called it supported."
            f" {first.doubt}".rstrip()
        )
        undecided = _undecided_check(
            second.check.claim, "unverifiable", issue, second.check.judged_by
        )
        return first._replace(
            check=undecided.model_copy(update={"abstained": "either_way"}), stances=second.stances
        )
    return second


def more_serious(first: ClaimJudgement | None, second: ClaimJudgement) -> ClaimJudgement:
    """Return the more serious of two verdicts on the same words, so that an earlier denial is never
    lost.
    """
    if first is None:
        return second
    return min(first, second, key=lambda judgement: _GRAVITY.index(judgement.check.verdict))


_GRAVITY: tuple[ClaimVerdict, ...] = (
    "contradicted",
    "unsupported",
    "partial",
    "unverifiable",
    "unscored",
    "supported",
)


def judge_by_number(
    claims: Sequence[Claim], verdicts: Sequence[NumberedVerdict], chunks: Chunks, judged_by: str
) -> tuple[ClaimJudgement, ...]:
    """Return a judgement for each claim, in order; the verdicts refer to claims by number, counted
    from 1.

    If there are several verdicts on a number, the most serious one counts. Verdicts on unknown
    numbers are ignored, and a claim without a verdict is unscored.
    """
    by_number = _verdicts_by_number(verdicts, len(claims))
    judgements = []
    for number, claim in enumerate(claims, 1):
        judgement: ClaimJudgement | None = None
        for verdict in by_number.get(number, ()):
            judgement = more_serious(judgement, judge(claim, verdict, chunks, judged_by))
        judgements.append(judgement or unscored_claim(claim, _NONE, judged_by))
    return tuple(judgements)


def _verdicts_by_number(
    verdicts: Sequence[NumberedVerdict], count: int
) -> dict[int, list[NumberedVerdict]]:
    """Group the verdicts by the numbers of their claims.

    If a model counts from 0, its numbers are 0 to one less than the number of claims, and each is
    raised by one. If there is a verdict on 0 but the numbers don't match that pattern, the
    numbering is ambiguous and all verdicts are ignored, because a verdict shifted by one would
    confirm a claim that wasn't judged.
    """
    by_number: dict[int, list[NumberedVerdict]] = defaultdict(list)
    for verdict in verdicts:
        if (number := number_of(verdict.number)) is not None:
            by_number[number].append(verdict)
    numbers = set(range(1, count + 1))
    if 0 not in by_number or numbers <= by_number.keys():
        return by_number
    counted_from_0 = by_number.keys() == {number - 1 for number in numbers}
    return {number + 1: group for number, group in by_number.items()} if counted_from_0 else {}


def unscored_batch(
    batch: Sequence[Claim], error: StepError, judged_by: str
) -> tuple[ClaimJudgement, ...]:
    """Return unscored judgements for a batch of claims whose call failed."""
    unscored = Unscored.of(error)
    return tuple(unscored_claim(claim, unscored, judged_by) for claim in batch)


def for_partial_evidence(judgement: ClaimJudgement, share: float) -> ClaimJudgement:
    """Return the judgement for a verifier that read only this share of the evidence, and so can't
    know the rest.
    """
    stances = {
        chunk: stance for chunk, stance in judgement.stances.items() if stance != "leaves_open"
    }
    check = judgement.check
    if check.verdict == "unsupported":
        issue = f"None of the passages that were read supports this ({share:.0%} of the evidence)."
        check = check.model_copy(
            update={"verdict": "unverifiable", "support": None, "issue": issue}
        )
    return judgement._replace(check=check, stances=stances)


def unverifiable(claims: Sequence[Claim], judged_by: str) -> tuple[ClaimJudgement, ...]:
    """Return unverifiable judgements for all claims, because no chunk has text."""
    issue = "There is nothing to check this against."
    return tuple(
        ClaimJudgement(_undecided_check(claim, "unverifiable", issue, judged_by))
        for claim in claims
    )


def unscored_claim(claim: Claim, unscored: Unscored, judged_by: str) -> ClaimJudgement:
    """Return the judgement of a claim that has no verdict."""
    issue = f"{unscored.reason[:1].upper()}{unscored.reason[1:]}."
    return ClaimJudgement(
        _undecided_check(claim, "unscored", issue, judged_by, unscored), {}, issue
    )


def _either_way(claim: Claim, verdict: Verdict, judged_by: str) -> ClaimCheck:
    """Return the check of a claim whose verdict the verifier isn't sure of."""
    confidence = normalize_score("confidence", verdict.confidence).value
    certainty = (
        "did not say how sure it is"
        if confidence is None
        else f"is not sure of it ({confidence:.2g})"
    )
    reasoning = verdict.reasoning.strip()
    issue = f"The verifier called this {verdict.verdict} and {certainty}. {reasoning}".strip()
    check = _undecided_check(claim, "unverifiable", issue, judged_by)
    return check.model_copy(update={"abstained": "either_way", "confidence": confidence})


def _undecided_check(
    claim: Claim,
    verdict: ClaimVerdict,
    issue: str,
    judged_by: str,
    unscored: Unscored | None = None,
) -> ClaimCheck:
    return ClaimCheck(
        claim=claim,
        verdict=verdict,
        support=None,
        confidence=None,
        issue=issue,
        judged_by=judged_by,
        unscored=unscored,
    )


def number_of(value: object) -> int | None:
    """Return a number that a model may write as 2, 2.0 or "2", or None if it isn't a number."""
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 10:
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
        return None
    return int(value)


class _LocatedPassage(NamedTuple):
    """A verdict's statement on one chunk, with the position of the quoted words in it.

    ``found`` is also true if the words occur in the line that names the chunk's source.
    """

    passage: QuotedPassage
    chunk: str | None
    stance: Stance | None
    quotes: tuple[Quote, ...] = ()
    found: bool = False

    @property
    def credits(self) -> bool:
        """Whether the verifier says that the passage supports the claim or a part of it."""
        return self.stance in ("supports", "supports_together")

    @classmethod
    def of(cls, passage: QuotedPassage, chunks: Chunks) -> _LocatedPassage:
        """Return a passage with its position in the evidence."""
        chunk, stance = chunks.id_of(passage.evidence_id), _STANCES.get(str(passage.stance))
        if chunk is None or stance is None or stance == "leaves_open":
            return cls(passage, chunk, stance)
        quotes = chunks.quotes(chunk, passage.quote, _SCORE[stance])
        in_source = not quotes and locate_quote(passage.quote, chunks.sources[chunk]) is not None
        is_specific = _is_specific(passage.quote, chunks.texts[chunk])
        return cls(passage, chunk, stance, quotes, is_specific and (bool(quotes) or in_source))


_WORD = re.compile(r"[^\W_]+")
_WIDE = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]{3}")
"""Three characters of Korean or of a script without spaces: about a word with its particle."""


def _is_specific(quote: str, text: str) -> bool:
    """Return whether a quotation is specific enough to count.

    It is if it has a figure, is the whole of a short chunk, or has two words, one long word or
    several characters of a script without spaces. Function words alone don't count, because "of
    the" occurs in every chunk.
    """
    words = _WORD.findall(quote.casefold())
    if any(any(map(str.isdigit, word)) for word in words):
        return True
    if words and quote.strip(" .\"'") == text.strip(" .\"'"):
        return True
    is_long_enough = (
        len(words) >= MIN_WORDS
        or sum(map(len, words)) >= MIN_CHARACTERS
        or _WIDE.search(quote) is not None
    )
    return is_long_enough and not all(map(is_function_word, words))


def _doubt(
    word: ClaimVerdict,
    claim: Claim,
    reply: Verdict,
    passages: Sequence[_LocatedPassage],
    chunks: Chunks,
) -> str:
    """Return the reason why a valid verdict can't count, or an empty string if it can."""
    if word == "contradicted":
        denying = [passage for passage in passages if passage.stance == "contradicts"]
        return "" if any(passage.found for passage in denying) else _not_found("denies", denying)
    if word != "supported":
        return ""
    crediting = [passage for passage in passages if passage.credits]
    alone = [passage for passage in crediting if passage.stance == "supports"]
    if not crediting:
        if _is_about_silence(claim) and all(
            passage.stance == "leaves_open" for passage in passages
        ):
            return ""
        return _not_found("supports", crediting)
    if misquoted := [
        passage for passage in passages if passage.stance == "contradicts" and not passage.found
    ]:
        return _not_found("denies", misquoted)
    if not any(passage.found for passage in alone) and not all(
        passage.found for passage in crediting
    ):
        return _not_found("supports", [passage for passage in crediting if not passage.found])
    return _wrong_calculation(reply, chunks)


def _not_found(verb: str, passages: Sequence[_LocatedPassage]) -> str:
    if not passages:
        return f"The verifier names no chunk that {verb} this."
    unknown = [passage.passage.evidence_id for passage in passages if passage.chunk is None]
    if unknown:
        return f"The verifier rests this on {join_names(unknown)}, which the case doesn't have."
    names = join_names(list(dict.fromkeys(passage.chunk for passage in passages if passage.chunk)))
    if not any(passage.passage.quote.strip() for passage in passages):
        return f"The verifier quotes no words of {names}."
    if any(passage.quotes for passage in passages):
        return f"What the verifier quotes from {names} says too little."
    return f"The words that the verifier quotes from {names} are not there."


_SOURCE_WORD = re.compile(rf"(?<!\w)(?:{SOURCE_WORD}|{RESULT_WORD})(?!\w)", re.IGNORECASE)

# "The press release states no reason": a document that only informs, followed by a verb of saying.
# Documents that rule or measure are left out, and so are verbs of doing. "The policy gives no
# refund" is about refunds and "the study reported no deaths" about deaths. Both need a quotation.
_DOCUMENT_TELLS = re.compile(
    r"(?<!\w)(?:(?:press )?releases?|memos?|memorand(?:um|a)|letters?|e-?mails?|notices?|leaflets?"
    r"|brochures?|statements?|minutes|transcripts?|manuals?|handbooks?|filings?|bulletins?|columns?"
    r"|interviews?|speech(?:es)?)"
    r"(?!\w)[^.;!?]{0,60}(?<!\w)(?:say|said|state|mention|name|specif(?:y|ie)|explain|tell"
    r"|disclose|indicate|describe)(?:s|ed|d)?(?!\w)",
    re.IGNORECASE,
)

# A clause with "that" is about the world, and so is a negation in it: "the report states that
# no fee is due" needs a quotation, "the report doesn't state that a fee is due" has none.
_CLAUSE_END = re.compile(r"[.!?;]\s|:|(?<!\w)(?:that|dass|daß|que|che)(?!\w).*", re.IGNORECASE)

# "states no reason", but not "states no deaths occurred".
_NO_MORE_THAN_ONE_WORD = re.compile(r"\s+(?:no\s+\w+|nothing)\W*", re.IGNORECASE)


def _is_about_silence(claim: Claim) -> bool:
    """Return whether a claim only says that the sources are silent, which no quotation could
    confirm.
    """
    texts = filter(None, (claim.text, claim.statement))
    return any(
        hedges(text)
        or any(
            (negates(clause) and _SOURCE_WORD.search(clause) is not None)
            or _says_document_is_silent(clause)
            for clause in _CLAUSE_END.split(text)
        )
        for text in texts
    )


def _says_document_is_silent(clause: str) -> bool:
    """Return whether a clause says that a document doesn't tell something."""
    statement = _DOCUMENT_TELLS.search(clause)
    if statement is None:
        return False
    rest = clause[statement.end() :]
    return negates(clause[: statement.end()]) or _NO_MORE_THAN_ONE_WORD.fullmatch(rest) is not None


def _wrong_calculation(reply: Verdict, chunks: Chunks) -> str:
    calculation = check_calculation(reply.calculation)
    if calculation.right is False:
        return f"The verifier's calculation is wrong: {reply.calculation.strip()}."
    if unknown := unknown_operands(calculation, [*chunks.texts.values(), *chunks.sources.values()]):
        numbers = join_names([f"{number:g}" for number in unknown])
        return f"The verifier calculates with {numbers}, which no chunk has."
    return ""


def _is_sure(word: ClaimVerdict, reply: Verdict) -> bool:
    confidence = normalize_score("confidence", reply.confidence).value
    threshold = SURE_FROM if word in ("supported", "contradicted") else SILENT_FROM
    return confidence is not None and confidence >= threshold


def _stances(word: ClaimVerdict, passages: Sequence[_LocatedPassage]) -> dict[str, Stance]:
    """Return the stance of each chunk; if a verdict mentions a chunk twice, the later stance
    counts.

    A supporting passage whose words aren't in the chunk is ignored. Passages of one chunk that each
    support a part support the claim if no other chunk is needed.
    """
    stances: dict[str, Stance] = {}
    for passage in passages:
        if (
            passage.chunk is not None
            and passage.stance is not None
            and (passage.found or passage.stance == "leaves_open")
        ):
            stances[passage.chunk] = passage.stance
    crediting = [
        chunk for chunk, stance in stances.items() if stance in ("supports", "supports_together")
    ]
    if word == "supported" and len(crediting) == 1:
        stances[crediting[0]] = "supports"
    return stances


def _found_quotes(passages: Sequence[_LocatedPassage]) -> tuple[Quote, ...]:
    """Return the quotations that occur in their chunks, without duplicates."""
    quotes = {
        (quote.evidence_id, quote.start, quote.end): quote
        for passage in passages
        if passage.found
        for quote in passage.quotes
    }
    return tuple(quotes.values())


def _contradiction(
    claim: Claim, located: _LocatedPassage, chunks: Chunks, reply: Verdict
) -> Contradiction | None:
    """Return the two passages that contradict each other; None if the evidence has no such words.

    If the claim doesn't contain the words at fault, the whole claim is used. The evidence may be
    the line that names the chunk's source, because the model sees that line too.
    """
    passage, chunk = located.passage, located.chunk
    if chunk is None:
        return None
    in_claim = locate_quote(passage.claim_words, claim.text, claim.markers)
    in_evidence = locate_quote(passage.quote, chunks.texts[chunk])
    in_source = _in_source(claim, passage, chunk, chunks, reply)
    if in_evidence is None and not in_source:
        return None
    claim_start, claim_end = (in_claim.start, in_claim.end) if in_claim else (0, len(claim.text))
    start, end = (
        (0, 0) if in_source or in_evidence is None else (in_evidence.start, in_evidence.end)
    )
    confidence = normalize_score("confidence", reply.confidence).value
    return Contradiction(
        kind="source" if in_source else "stated",
        claim_start=claim_start,
        claim_end=claim_end,
        claim_text=claim.text[claim_start:claim_end],
        evidence_id=chunk,
        evidence_start=start,
        evidence_end=end,
        evidence_text=chunks.sources[chunk] if in_source else chunks.texts[chunk][start:end],
        reason=reply.reasoning.strip(),
        strength=1.0 if confidence is None else confidence,
    )


_NAME = re.compile(r"[^\W\d_][\w'’-]{2,}|\d+")


def _in_source(
    claim: Claim, passage: QuotedPassage, chunk: str, chunks: Chunks, reply: Verdict
) -> bool:
    """Return whether the contradiction of a claim is in the line that names the chunk's source.

    That is so if the model quotes that line. It is also so if the words quoted from the text share
    nothing with the claim or with the model's reason, and the reason has a name from that line that
    is in neither the text nor the claim.
    """
    text, source = chunks.texts[chunk], chunks.sources[chunk]
    if locate_quote(passage.quote, text) is None:
        return locate_quote(passage.quote, source) is not None
    claim_and_reason = f"{claim.text} {reply.reasoning}".casefold()
    if set(_NAME.findall(passage.quote.casefold())) & set(_NAME.findall(claim_and_reason)):
        return False
    source_names = {
        name for name in _NAME.findall(source) if name[0].isupper() or name[0].isdigit()
    }
    text_and_claim = f"{text} {claim.text}".casefold()
    return any(
        name.casefold() not in text_and_claim
        for name in source_names & set(_NAME.findall(reply.reasoning))
    )


_SOURCES: dict[ClaimVerdict, tuple[Stance, ...]] = {
    **dict.fromkeys(("supported", "partial"), ("supports", "supports_together")),
    "contradicted": ("contradicts",),
}
"""The stances that make a chunk a source of the verdict."""


def _verdict_issue(
    word: ClaimVerdict, reply: Verdict, passages: Sequence[_LocatedPassage]
) -> str | None:
    parts = []
    if word != "supported":
        parts.append(
            reply.reasoning.strip() or (_READ_IN_TWO_WAYS if reply.verdict == _EITHER_WAY else "")
        )
    unquoted = [
        passage.chunk
        for passage in passages
        if passage.chunk
        and passage.stance in _SCORE
        and passage.passage.quote.strip()
        and not passage.found
    ]
    if unquoted:
        parts.append(
            f"The words quoted from {join_names(list(dict.fromkeys(unquoted)))} are not there."
        )
    return " ".join(filter(None, parts)) or None


def _steps(reply: Verdict) -> str:
    return " ".join(filter(None, (reply.calculation.strip(), reply.reasoning.strip())))


# Findings on the references of a sentence, derived from the verifier's stances on the chunks.
#
# A sentence may be judged in several claims. If one chunk supports one of them and another chunk
# another, neither is redundant. So each reference is judged once per sentence, and recorded with
# the claim that it's most closely related to.

_CLOSEST: tuple[Stance | None, ...] = (
    "supports",
    "contradicts",
    "supports_together",
    "leaves_open",
    None,
)
"""The order in which stances on several claims of a sentence decide the finding on a reference."""


def with_references(judged: Sequence[ClaimJudgement], chunks: Chunks) -> tuple[ClaimCheck, ...]:
    """Return the checks with the findings on the references of their sentences."""
    sentences: dict[object, list[int]] = defaultdict(list)
    for index, judgement in enumerate(judged):
        number = judgement.check.claim.sentence
        sentences[("alone", index) if number is None else number].append(index)
    references: dict[int, list[ReferenceCheck]] = defaultdict(list)
    for members in sentences.values():
        group = [judged[index] for index in members]
        for cited in dict.fromkeys(
            chunk for judgement in group for chunk in judgement.check.claim.cited
        ):
            references[members[_owner(cited, group)]].append(_reference_check(cited, group, chunks))
    return tuple(
        (
            judgement.check.model_copy(update={"references": tuple(references[index])})
            if index in references
            else judgement.check
        )
        for index, judgement in enumerate(judged)
    )


def _owner(cited: str, group: Sequence[ClaimJudgement]) -> int:
    """Return the index in the group of the claim that is most closely related to the reference."""
    citing = [
        index for index, judgement in enumerate(group) if cited in judgement.check.claim.cited
    ]
    return min(citing, key=lambda index: (_CLOSEST.index(group[index].stances.get(cited)), index))


def _reference_check(cited: str, group: Sequence[ClaimJudgement], chunks: Chunks) -> ReferenceCheck:
    def finding(
        name: ReferenceFinding, support: float | None, reason: str, better: str | None = None
    ) -> ReferenceCheck:
        return ReferenceCheck(
            evidence_id=cited, finding=name, support=support, reason=reason, better=better
        )

    if not chunks.texts.get(cited, "").strip():
        return finding("unchecked", None, "This chunk has no text to check against.")
    owner = group[_owner(cited, group)]
    stances = {judgement.stances.get(cited) for judgement in group}
    if "supports" in stances:
        return finding("supports", owner.check.support, "It supports this.")
    if "contradicts" in stances:
        return finding("contradicts", 0.0, owner.check.issue or "It contradicts this.")
    if others := _others_suffice(cited, group):
        return finding("redundant", 0.0, f"{' and '.join(others)} support this without it.")
    if "supports_together" in stances:
        return finding("partly_supports", owner.check.support, "It supports part of this.")
    if stances == {None} or any(judgement.check.verdict == "unscored" for judgement in group):
        return finding("unchecked", None, "The verifier did not say whether it supports this.")
    if better := _better_chunk(group):
        return finding(
            "misattributed", 0.0, f"{cited} does not support this; {better} does.", better
        )
    return finding("unsupported", 0.0, "It does not support this.")


def _others_suffice(cited: str, group: Sequence[ClaimJudgement]) -> tuple[str, ...]:
    """Return the other cited chunks if they support every claim of the sentence in full, else
    nothing.
    """
    sufficient: list[str] = []
    for judgement in group:
        others = [
            chunk
            for chunk in judgement.check.claim.cited
            if chunk != cited and judgement.stances.get(chunk) == "supports"
        ]
        if not others:
            return ()
        sufficient.extend(others[:1])
    return tuple(dict.fromkeys(sufficient))


def _better_chunk(group: Sequence[ClaimJudgement]) -> str | None:
    """Return an uncited chunk that supports a claim which no cited chunk supports."""
    for judgement in group:
        cited = judgement.check.claim.cited
        if judgement.check.verdict != "supported" or any(
            judgement.stances.get(c) in ("supports", "supports_together") for c in cited
        ):
            continue
        for chunk, stance in judgement.stances.items():
            if stance == "supports" and chunk not in cited:
                return chunk
    return None
