"""A model's verdicts on claims, held against the evidence that they name.

A verdict counts only as far as code can follow it: "supported" and "contradicted" need words that
stand in the chunk they are quoted from, a calculation must come to what it says, and a verdict that
the model itself is not sure of is none. What can't be followed says so in ``Judged.doubt``, is
asked for once more by the verifier, and stays "not confirmed" if nothing better comes.
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
from masis.audit.measures.scores import normalise_score
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
"""The confidence from which a verdict counts: between "it can be read either way" (0.5) and "it
follows" (0.8).
"""
SILENT_FROM = 0.35
"""The same for "unsupported" and "partial", which say of the evidence only that it is silent."""
RAW_MOST = 4_000
WORDS_LEAST, CHARACTERS_LEAST = 2, 8
"""What a quotation must have of either, or a figure, to say anything: "the" stands in
every chunk.
"""
_NONE = Unscored(reason="the verifier gave no verdict on this claim", code=StepError.code)
_SUPPORT: dict[ClaimVerdict, float | None] = {
    "supported": 1.0,
    "partial": 0.5,
    "contradicted": 0.0,
    "unsupported": 0.0,
}
"""How far the evidence supports a claim of this verdict; None for those that say nothing of it."""
_SCORE: dict[Stance, float] = {"supports": 1.0, "supports_together": 0.5, "contradicts": 1.0}
_STANCES: dict[str, Stance] = {word: word for word in get_args(Stance)}
_EITHER_WAY = "either_way"
_READ_IN_TWO_WAYS = "This, or the evidence, can be read in two ways."
_VERDICTS: dict[str, ClaimVerdict] = {
    **{word: word for word in get_args(ClaimVerdict) if word != "unscored"},
    _EITHER_WAY: "unverifiable",
}


class Chunks:
    """The evidence of a case, by what a model calls it: an id that names none, and words that none
    has, don't count.
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
        """The id that a model means: to the letter, in brackets, in other case, by its number; None
        for no chunk.
        """
        found = (self._index.resolve(written).evidence_id for written in chunk_names(rearm(name)))
        return next(filter(None, found), None)

    def ids_of(self, names: Iterable[str]) -> tuple[str, ...]:
        """The ids that these names mean, each once, without those that mean none."""
        return tuple(
            dict.fromkeys(found for name in names if (found := self.id_of(name)) is not None)
        )

    def quotes(self, evidence_id: str, words: str, score: float) -> tuple[Quote, ...]:
        """Where the chunk says these words, a record for each part of a quote with dots; empty
        where it does not.
        """
        text = self.texts[evidence_id]
        return tuple(
            Quote(evidence_id=evidence_id, start=start, end=end, text=text[start:end], score=score)
            for start, end in located_parts(words, text)
        )


class ClaimJudgement(NamedTuple):
    """A claim's check, and what the verifier said of each chunk it spoke of.

    ``doubt`` says why the verdict can't count, in a sentence for whoever judges the claim again;
    empty where it does. ``denies`` says that the verifier spoke against the claim, whether that
    counts or not.
    """

    check: ClaimCheck
    stances: Mapping[str, Stance] = {}
    doubt: str = ""
    denies: bool = False


def judge(claim: Claim, given: Verdict, chunks: Chunks, judged_by: str) -> ClaimJudgement:
    """Return what a verdict on a claim comes to.

    Args:
        claim: What was judged.
        given: The verdict as the model gave it.
        chunks: The evidence of the case.
        judged_by: The model.

    Returns:
        The check. With a ``doubt`` its verdict is ``unverifiable``, or ``unscored`` where the word
        is no verdict.

    """
    word = _VERDICTS.get(str(given.verdict))
    if word is None:
        why = _unscored_reply(given, "the verifier's word is no verdict")
        return unscored_claim(claim, why, judged_by)
    passages = [_PlacedPassage.of(passage, chunks) for passage in given.evidence]
    denied = [each for each in passages if each.stance == "contradicts" and each.found]
    if denied and word in ("unsupported", "partial"):
        word = "contradicted"  # a passage that denies the claim counts, whatever word goes with it
    denies = word == "contradicted" or any(each.stance == "contradicts" for each in passages)
    doubt = _doubt(word, claim, given, passages, chunks)
    if doubt:
        return _doubtful_claim(claim, doubt, judged_by)._replace(denies=denies)
    stances = _stances(word, passages)
    if word != "unverifiable" and not _sure(word, given):
        return ClaimJudgement(_either_way(claim, given, judged_by), stances, denies=denies)
    against = [
        found
        for each in denied
        if (found := _contradicting_places(claim, each, chunks, given)) is not None
    ]
    places = {
        (each.evidence_id, each.evidence_start, each.evidence_end): each
        for each in reversed(against)
    }
    contradictions = tuple(reversed(places.values()))  # the first of each place
    supporting = any(each.credits and each.found for each in passages)
    check = ClaimCheck(
        claim=claim,
        verdict=word,
        support=_SUPPORT.get(word),
        confidence=normalise_score("confidence", given.confidence).value,
        sources=tuple(
            chunk for chunk, stance in stances.items() if stance in _SOURCES.get(word, ())
        ),
        quotes=_found_quotes(passages),
        contradictions=contradictions if word in ("contradicted", "supported") else (),
        issue=_verdict_issue(word, given, passages),
        steps=_steps(given) if word == "supported" else "",
        judged_by=judged_by,
        sources_disagree=bool(contradictions) and supporting,
        abstained="either_way" if given.verdict == _EITHER_WAY else None,
    )
    return ClaimJudgement(check, stances, denies=denies)


def judged_again(first: ClaimJudgement | None, second: ClaimJudgement) -> ClaimJudgement:
    """Return what holds after a claim was judged again: the second verdict, unless there is none.

    A model that spoke against a claim, and calls it supported when it is asked for the words, has
    said two things: the claim is not confirmed.
    """
    if first is None:
        return second
    if second.check.verdict == "unscored":
        return first
    if first.denies and second.check.verdict == "supported":
        issue = f"The verifier first spoke against this and then called it supported. {first.doubt}".strip()
        undecided = _undecided_check(
            second.check.claim, "unverifiable", issue, second.check.judged_by
        )
        return first._replace(
            check=undecided.model_copy(update={"abstained": "either_way"}), stances=second.stances
        )
    return second


def worse(first: ClaimJudgement | None, second: ClaimJudgement) -> ClaimJudgement:
    """Return the graver of two verdicts on the same words: what a model said against them is not
    taken back.
    """
    if first is None:
        return second
    return min(first, second, key=lambda each: _GRAVITY.index(each.check.verdict))


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
    """Return one for each claim, in their order; the verdicts name them by number, counted from 1.

    Of several verdicts on a number the graver counts. One on a number that was not given is left
    out, and a claim without one is unscored.
    """
    by_number = _verdicts_by_number(verdicts, len(claims))
    found = []
    for number, claim in enumerate(claims, 1):
        judged: ClaimJudgement | None = None
        for given in by_number.get(number, ()):
            judged = worse(judged, judge(claim, given, chunks, judged_by))
        found.append(judged or unscored_claim(claim, _NONE, judged_by))
    return tuple(found)


def _verdicts_by_number(
    verdicts: Sequence[NumberedVerdict], count: int
) -> dict[int, list[NumberedVerdict]]:
    """Return the verdicts by the numbers of their claims.

    A model that counts from 0 numbers as many verdicts as there are claims, each one lower: read as
    such. Where there is a verdict on 0 and not all claims have one, nothing says which claim a
    number means, and none is believed: a verdict on the claim before it would confirm what nobody
    judged.
    """
    found: dict[int, list[NumberedVerdict]] = defaultdict(list)
    for verdict in verdicts:
        if (number := number_of(verdict.number)) is not None:
            found[number].append(verdict)
    wanted = set(range(1, count + 1))
    if 0 not in found or wanted <= found.keys():
        return found
    counted_from_0 = found.keys() == {number - 1 for number in wanted}
    return {number + 1: given for number, given in found.items()} if counted_from_0 else {}


def unscored_batch(
    batch: Sequence[Claim], error: StepError, judged_by: str
) -> tuple[ClaimJudgement, ...]:
    """The claims of a batch that no verdicts came for."""
    why = Unscored.of(error)
    return tuple(unscored_claim(claim, why, judged_by) for claim in batch)


def of_passages(found: ClaimJudgement, share: float) -> ClaimJudgement:
    """What holds where the verifier read that share of the evidence: its silence says nothing of
    the rest.
    """
    stances = {chunk: stance for chunk, stance in found.stances.items() if stance != "leaves_open"}
    check = found.check
    if check.verdict == "unsupported":
        issue = f"None of the passages that were read supports this ({share:.0%} of the evidence)."
        check = check.model_copy(
            update={"verdict": "unverifiable", "support": None, "issue": issue}
        )
    return found._replace(check=check, stances=stances)


def unverifiable(claims: Sequence[Claim], judged_by: str) -> tuple[ClaimJudgement, ...]:
    """Claims where no chunk has text: there is nothing to ask a model about."""
    issue = "There is nothing to check this against."
    return tuple(
        ClaimJudgement(_undecided_check(claim, "unverifiable", issue, judged_by))
        for claim in claims
    )


def unscored_claim(claim: Claim, why: Unscored, judged_by: str) -> ClaimJudgement:
    """A claim without a verdict."""
    issue = f"{why.reason[:1].upper()}{why.reason[1:]}."
    return ClaimJudgement(_undecided_check(claim, "unscored", issue, judged_by, why), {}, issue)


def _doubtful_claim(claim: Claim, doubt: str, judged_by: str) -> ClaimJudgement:
    check = _undecided_check(claim, "unverifiable", doubt, judged_by)
    return ClaimJudgement(check.model_copy(update={"abstained": "quotation"}), {}, doubt)


def _either_way(claim: Claim, given: Verdict, judged_by: str) -> ClaimCheck:
    """Return the check of a claim on which the verifier gave a verdict that it isn't sure of."""
    sure = normalise_score("confidence", given.confidence).value
    how = "did not say how sure it is" if sure is None else f"is not sure of it ({sure:.2g})"
    issue = f"The verifier called this {given.verdict} and {how}. {given.reasoning.strip()}".strip()
    check = _undecided_check(claim, "unverifiable", issue, judged_by)
    return check.model_copy(update={"abstained": "either_way", "confidence": sure})


def _undecided_check(
    claim: Claim, verdict: ClaimVerdict, issue: str, judged_by: str, why: Unscored | None = None
) -> ClaimCheck:
    return ClaimCheck(
        claim=claim,
        verdict=verdict,
        support=None,
        confidence=None,
        issue=issue,
        judged_by=judged_by,
        unscored=why,
    )


def number_of(given: object) -> int | None:
    """A number as a model may write it: 2, 2.0, "2"; None for what is none."""
    if isinstance(given, str) and given.strip().isdecimal() and len(given) < 10:
        return int(given)
    if isinstance(given, bool) or not isinstance(given, int | float) or given != given // 1:
        return None
    return int(given)


class _PlacedPassage(NamedTuple):
    """What a verdict says of one chunk, and where the chunk has the words quoted from it.

    ``found`` is true also where the words stand in the line that names the chunk's source.
    """

    passage: QuotedPassage
    chunk: str | None
    stance: Stance | None
    quotes: tuple[Quote, ...] = ()
    found: bool = False

    @property
    def credits(self) -> bool:
        """Return whether it is said to support the claim or a part of it."""
        return self.stance in ("supports", "supports_together")

    @classmethod
    def of(cls, passage: QuotedPassage, chunks: Chunks) -> _PlacedPassage:
        """Return a passage with its place in the evidence."""
        chunk, stance = chunks.id_of(passage.evidence_id), _STANCES.get(str(passage.stance))
        if chunk is None or stance is None or stance == "leaves_open":
            return cls(passage, chunk, stance)
        quotes = chunks.quotes(chunk, passage.quote, _SCORE[stance])
        in_source = not quotes and locate_quote(passage.quote, chunks.sources[chunk]) is not None
        says = _says_anything(passage.quote, chunks.texts[chunk])
        return cls(passage, chunk, stance, quotes, says and (bool(quotes) or in_source))


_WORD = re.compile(r"[^\W_]+")
_WIDE = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]{3}")
"""Three characters of a script that sets no blanks, or of Korean: about a word with its
particle.
"""


def _says_anything(quote: str, text: str) -> bool:
    """Return whether a quotation says something: it has a figure, or is all of a short chunk, or
    has words enough.

    Words enough are two words, a long one or some characters of a script without blanks; not all of
    them may be function words: "of the" stands in every chunk.
    """
    words = _WORD.findall(quote.casefold())
    if any(any(map(str.isdigit, word)) for word in words):
        return True
    if words and quote.strip(" .\"'") == text.strip(" .\"'"):
        return True
    enough = (
        len(words) >= WORDS_LEAST
        or sum(map(len, words)) >= CHARACTERS_LEAST
        or _WIDE.search(quote) is not None
    )
    return enough and not all(map(is_function_word, words))


def _doubt(
    word: ClaimVerdict,
    claim: Claim,
    given: Verdict,
    passages: Sequence[_PlacedPassage],
    chunks: Chunks,
) -> str:
    """Return why a verdict can't count though its word is one; empty where it can."""
    if word == "contradicted":
        denying = [each for each in passages if each.stance == "contradicts"]
        return "" if any(each.found for each in denying) else _not_found("denies", denying)
    if word != "supported":
        return ""
    crediting = [each for each in passages if each.credits]
    alone = [each for each in crediting if each.stance == "supports"]
    if not crediting:
        if _says_nothing_is_said(claim) and all(each.stance == "leaves_open" for each in passages):
            return ""
        return _not_found("supports", crediting)
    if misquoted := [each for each in passages if each.stance == "contradicts" and not each.found]:
        return _not_found("denies", misquoted)
    if not any(each.found for each in alone) and not all(each.found for each in crediting):
        return _not_found("supports", [each for each in crediting if not each.found])
    return _wrong_calculation(given, chunks)


def _not_found(does: str, passages: Sequence[_PlacedPassage]) -> str:
    if not passages:
        return f"The verifier names no chunk that {does} this."
    unknown = [each.passage.evidence_id for each in passages if each.chunk is None]
    if unknown:
        return f"The verifier rests this on {join_names(unknown)}, which the case doesn't have."
    names = join_names(list(dict.fromkeys(each.chunk for each in passages if each.chunk)))
    if not any(each.passage.quote.strip() for each in passages):
        return f"The verifier quotes no words of {names}."
    if any(each.quotes for each in passages):
        return f"What the verifier quotes from {names} says too little."
    return f"The words that the verifier quotes from {names} are not there."


_SOURCE_WORD = re.compile(rf"(?<!\w)(?:{SOURCE_WORD}|{RESULT_WORD})(?!\w)", re.IGNORECASE)

# "The press release states no reason": a kind of document with a verb of telling behind it. Verbs of
# results stay out: "the study reported no deaths" is about deaths, and needs a quotation.
_DOCUMENT_TELLS = re.compile(
    r"(?<!\w)(?:(?:press )?releases?|memos?|memorand(?:um|a)|letters?|e-?mails?|notices?|leaflets?"
    r"|brochures?|statements?|stud(?:y|ies)|surveys?|minutes|transcripts?|manuals?|handbooks?"
    r"|guidelines?|polic(?:y|ies)|contracts?|agreements?|tables?|filings?|bulletins?|columns?"
    r"|interviews?|speech(?:es)?|posts?|logs?)"
    r"(?!\w)[^.;!?]{0,60}(?<!\w)(?:say|state|mention|name|specif(?:y|ie)|explain|tell|disclose"
    r"|address|discuss|give|indicate|describe|contain)(?:s|ed|d)?(?!\w)",
    re.IGNORECASE,
)

_SENTENCE_END = re.compile(r"[.!?;]\s")


def _says_nothing_is_said(claim: Claim) -> bool:
    """Return whether a claim only says what the sources don't tell: no words of theirs can be
    quoted for that.
    """
    texts = filter(None, (claim.text, claim.statement))
    return any(
        hedges(text)
        or (negates(text) and _SOURCE_WORD.search(text) is not None)
        or any(
            negates(part) and _DOCUMENT_TELLS.search(part) is not None
            for part in _SENTENCE_END.split(text)
        )
        for text in texts
    )


def _wrong_calculation(given: Verdict, chunks: Chunks) -> str:
    calculation = check_calculation(given.calculation)
    if calculation.right is False:
        return f"The verifier's calculation is wrong: {given.calculation.strip()}."
    if unknown := unknown_operands(calculation, [*chunks.texts.values(), *chunks.sources.values()]):
        numbers = join_names([f"{number:g}" for number in unknown])
        return f"The verifier calculates with {numbers}, which no chunk has."
    return ""


def _sure(word: ClaimVerdict, given: Verdict) -> bool:
    confidence = normalise_score("confidence", given.confidence).value
    least = SURE_FROM if word in ("supported", "contradicted") else SILENT_FROM
    return confidence is not None and confidence >= least


def _unscored_reply(given: Verdict, reason: str) -> Unscored:
    return Unscored(reason=reason, code=StepError.code, raw=given.model_dump_json()[:RAW_MOST])


def _stances(word: ClaimVerdict, passages: Sequence[_PlacedPassage]) -> dict[str, Stance]:
    """What the verdict says of each chunk; where it speaks of one twice, the later word binds.

    What is credited without words that the chunk has is not said. A chunk whose passages each
    support a part supports the claim, if no other is needed for a claim that is supported.
    """
    found: dict[str, Stance] = {}
    for each in passages:
        if (
            each.chunk is not None
            and each.stance is not None
            and (each.found or each.stance == "leaves_open")
        ):
            found[each.chunk] = each.stance
    crediting = [
        chunk for chunk, stance in found.items() if stance in ("supports", "supports_together")
    ]
    if word == "supported" and len(crediting) == 1:
        found[crediting[0]] = "supports"
    return found


def _found_quotes(passages: Sequence[_PlacedPassage]) -> tuple[Quote, ...]:
    """The quotations that stand in their chunks, each place once."""
    found = {
        (quote.evidence_id, quote.start, quote.end): quote
        for each in passages
        if each.found
        for quote in each.quotes
    }
    return tuple(found.values())


def _contradicting_places(
    claim: Claim, placed: _PlacedPassage, chunks: Chunks, given: Verdict
) -> Contradiction | None:
    """The two places that contradict each other; all of the claim where its words at fault aren't
    in it.

    A model is shown the line that names a chunk's source, and may find the contradiction there.
    """
    passage, chunk = placed.passage, placed.chunk
    if chunk is None:
        return None
    mine = locate_quote(passage.claim_words, claim.text, claim.markers)
    theirs = locate_quote(passage.quote, chunks.texts[chunk])
    in_source = _in_source(claim, passage, chunk, chunks, given)
    if theirs is None and not in_source:
        return None
    mine_start, mine_end = (mine.start, mine.end) if mine else (0, len(claim.text))
    start, end = (0, 0) if in_source or theirs is None else (theirs.start, theirs.end)
    sure = normalise_score("confidence", given.confidence).value
    return Contradiction(
        kind="source" if in_source else "stated",
        claim_start=mine_start,
        claim_end=mine_end,
        claim_text=claim.text[mine_start:mine_end],
        evidence_id=chunk,
        evidence_start=start,
        evidence_end=end,
        evidence_text=chunks.sources[chunk] if in_source else chunks.texts[chunk][start:end],
        reason=given.reasoning.strip(),
        strength=1.0 if sure is None else sure,
    )


_NAME = re.compile(r"[^\W\d_][\w'’-]{2,}|\d+")


def _in_source(
    claim: Claim, passage: QuotedPassage, chunk: str, chunks: Chunks, given: Verdict
) -> bool:
    """Return whether what contradicts a claim stands in the line that names the chunk's source.

    It does where the model quotes that line, or where the words quoted from the text have nothing
    of the claim nor of the model's reason, and the reason has a name of that line that neither the
    text nor the claim has.
    """
    text, source = chunks.texts[chunk], chunks.sources[chunk]
    if locate_quote(passage.quote, text) is None:
        return locate_quote(passage.quote, source) is not None
    spoken_of = f"{claim.text} {given.reasoning}".casefold()
    if set(_NAME.findall(passage.quote.casefold())) & set(_NAME.findall(spoken_of)):
        return False
    named = {each for each in _NAME.findall(source) if each[0].isupper() or each[0].isdigit()}
    elsewhere = f"{text} {claim.text}".casefold()
    return any(
        each.casefold() not in elsewhere for each in named & set(_NAME.findall(given.reasoning))
    )


_SOURCES: dict[ClaimVerdict, tuple[Stance, ...]] = {
    **dict.fromkeys(("supported", "partial"), ("supports", "supports_together")),
    "contradicted": ("contradicts",),
}
"""What a chunk must say to be a source of the verdict."""


def _verdict_issue(
    word: ClaimVerdict, given: Verdict, passages: Sequence[_PlacedPassage]
) -> str | None:
    parts = []
    if word != "supported":
        parts.append(
            given.reasoning.strip() or (_READ_IN_TWO_WAYS if given.verdict == _EITHER_WAY else "")
        )
    unquoted = [
        each.chunk
        for each in passages
        if each.chunk and each.stance in _SCORE and each.passage.quote.strip() and not each.found
    ]
    if unquoted:
        parts.append(
            f"The words quoted from {join_names(list(dict.fromkeys(unquoted)))} are not there."
        )
    return " ".join(filter(None, parts)) or None


def _steps(given: Verdict) -> str:
    return " ".join(filter(None, (given.calculation.strip(), given.reasoning.strip())))


# Whether each reference of a sentence supports it, from what the verifier said about the chunks.
#
# A sentence may be judged in several claims: one chunk then supports one of them, another chunk
# another, and neither is redundant. So each reference is judged once a sentence, and recorded with
# the claim it has most to do with.

_CLOSEST: tuple[Stance | None, ...] = (
    "supports",
    "contradicts",
    "supports_together",
    "leaves_open",
    None,
)
"""Which of several stances on the claims of a sentence tells most of a reference."""


def with_references(judged: Sequence[ClaimJudgement], chunks: Chunks) -> tuple[ClaimCheck, ...]:
    """The checks, with what can be said of the references of their sentences."""
    sentences: dict[object, list[int]] = defaultdict(list)
    for at, each in enumerate(judged):
        number = each.check.claim.sentence
        sentences[("alone", at) if number is None else number].append(at)
    found: dict[int, list[ReferenceCheck]] = defaultdict(list)
    for members in sentences.values():
        group = [judged[at] for at in members]
        for cited in dict.fromkeys(chunk for each in group for chunk in each.check.claim.cited):
            found[members[_owner(cited, group)]].append(_reference_check(cited, group, chunks))
    return tuple(
        (
            each.check.model_copy(update={"references": tuple(found[at])})
            if at in found
            else each.check
        )
        for at, each in enumerate(judged)
    )


def _owner(cited: str, group: Sequence[ClaimJudgement]) -> int:
    """The place in the group of the claim that the reference has most to do with."""
    citing = [at for at, each in enumerate(group) if cited in each.check.claim.cited]
    return min(citing, key=lambda at: (_CLOSEST.index(group[at].stances.get(cited)), at))


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
    stances = {each.stances.get(cited) for each in group}
    if "supports" in stances:
        return finding("supports", owner.check.support, "It supports this.")
    if "contradicts" in stances:
        return finding("contradicts", 0.0, owner.check.issue or "It contradicts this.")
    if others := _others_suffice(cited, group):
        return finding("redundant", 0.0, f"{' and '.join(others)} support this without it.")
    if "supports_together" in stances:
        return finding("partly_supports", owner.check.support, "It supports part of this.")
    if stances == {None} or any(each.check.verdict == "unscored" for each in group):
        return finding("unchecked", None, "The verifier did not say whether it supports this.")
    if better := _better_chunk(group):
        return finding(
            "misattributed", 0.0, f"{cited} does not support this; {better} does.", better
        )
    return finding("unsupported", 0.0, "It does not support this.")


def _others_suffice(cited: str, group: Sequence[ClaimJudgement]) -> tuple[str, ...]:
    """Return the other cited chunks that support every claim of the sentence whole; empty where
    they don't.
    """
    bearing: list[str] = []
    for each in group:
        others = [
            c for c in each.check.claim.cited if c != cited and each.stances.get(c) == "supports"
        ]
        if not others:
            return ()
        bearing.extend(others[:1])
    return tuple(dict.fromkeys(bearing))


def _better_chunk(group: Sequence[ClaimJudgement]) -> str | None:
    """Return a chunk that the sentence doesn't cite and that supports a claim of it that nothing
    cited supports.
    """
    for each in group:
        cited = each.check.claim.cited
        if each.check.verdict != "supported" or any(
            each.stances.get(c) in ("supports", "supports_together") for c in cited
        ):
            continue
        for chunk, stance in each.stances.items():
            if stance == "supports" and chunk not in cited:
                return chunk
    return None
