"""The verifier role filled by a word tagger (LettuceDetect), which marks unsupported words and
never confirms a claim.

The model reads the passages, the question and the whole answer, in the prompt that it was trained
on. A word is marked if the model calls any of its tokens unsupported. Finding nothing to mark isn't
the same as finding evidence, so every claim stays ``unverifiable``, with the marked words if there
are any.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import NamedTuple

from masis.audit.claims import ClaimResults, one_check_each
from masis.audit.sentences import split_sentences
from masis.errors import StepError
from masis.integrations.local.scoring import TokenScore
from masis.integrations.local.verifier import LocalRole
from masis.llm.roles.verdicts import unscored_batch, unverifiable
from masis.schema.audit import Claim, ClaimCheck, MarkedWords
from masis.schema.case import Evidence
from masis.schema.wording import describe_marked_words

UNSUPPORTED_FROM = 0.5
"""LettuceDetect takes the likelier of its two outputs, and the one for support where
they are even.
"""
MOST_PARTS = 4
"""The most parts that passages are split into. More would take minutes on a CPU."""
LEAST_PASSAGE = 32
"""The fewest tokens that must be left for passages. If fewer are left, the answer is too long."""
MOST_SUPPORT = 0.5
"""The highest support of a claim. It's only used to order the queue, and doesn't confirm anything.
"""

NOTHING_MARKED = "Not confirmed: the tagger marks no words here, and it never confirms a claim."
TOO_LONG = (
    "Not confirmed: answer and evidence are longer than the tagger reads, so nothing was marked."
)

# A figure is one word with its separators (4.5, 1,500). Where a script writes no blanks between
# words, each character is one: a mark would else run over a whole clause. A sign may be all that is
# wrong (% for a unit, < for >), while a mark on punctuation alone says nothing.
_WORD = re.compile(
    r"[぀-ヿ㐀-䶿一-鿿฀-๿]|(?:(?![぀-ヿ㐀-䶿一-鿿฀-๿])[^\W_])++(?:[.,'’-](?:(?![぀-ヿ㐀-䶿一-鿿฀-๿])[^\W_])++)*+"
    r"|[%‰°€$£¥<>=≤≥±−]"
)


class Prompts(NamedTuple):
    """A language's word for a passage and its two prompts."""

    passage: str
    with_question: str
    without_question: str


class UnmarkedAnswer(NamedTuple):
    """An answer without citation markers. ``pieces`` maps positions in ``text`` to positions in the
    answer.
    """

    text: str
    pieces: tuple[tuple[int, int], ...]

    def in_answer(self, place: int) -> int:
        """Return the position in the answer of the character at ``place`` in the text."""
        start, original = self.pieces[
            bisect_right(self.pieces, place, key=lambda piece: piece[0]) - 1
        ]
        return original + place - start


@cache
def prompts() -> dict[str, Prompts]:
    """Return LettuceDetect's prompts by language."""
    text = (resources.files("masis.integrations.local") / "tagger_prompts.toml").read_text(
        encoding="utf-8"
    )
    return {language: Prompts(**given) for language, given in tomllib.loads(text).items()}


def language_of(name: str, languages: Sequence[str] | None) -> str:
    """Return the language of a model's prompts: LettuceDetect's models for one language have it in
    their names.

    Example: ``lettucedect-210m-eurobert-de-v1`` is ``de``. Else the card's language, where it names
    one; else English, as in LettuceDetect's code.
    """
    found = re.search(r"-([a-z]{2})-v\d", name.casefold())
    named = {"cn": "zh"}.get(found[1], found[1]) if found else ""
    for language in (named, languages[0] if languages and len(languages) == 1 else ""):
        if language in prompts():
            return language
    return "en"


def context_of(passages: Sequence[str], question: str, language: str) -> str:
    """Return the prompt before the answer, like ``PromptUtils.format_context`` of LettuceDetect."""
    own = prompts()[language]
    listed = "\n".join(
        f"{own.passage} {number}: {passage}" for number, passage in enumerate(passages, 1)
    )
    if not question.strip():
        return own.without_question.format(passages=listed)
    return own.with_question.format(question=question, count=len(passages), passages=listed)


@dataclass(frozen=True)
class LocalTagger(LocalRole):
    """Marks the words of each claim that the model calls unsupported. It never confirms a claim."""

    def verify(
        self, claims: Sequence[Claim], evidence: Sequence[Evidence]
    ) -> tuple[ClaimCheck, ...]:
        """Return one check for each claim, in order. Each claim is read as a separate answer."""
        return tuple(
            check
            for claim in claims
            for check in self._checks((claim,), "", claim.text, 0, evidence)
        )

    def check(
        self,
        claims: Sequence[Claim],
        query: str,
        answer: str,
        evidence: Sequence[Evidence],
        *,
        completeness: bool,
    ) -> ClaimResults:
        """Read the whole answer once and check every claim. If requested, also list missing points."""
        placed = all(
            claim.start is not None and answer[claim.start : claim.end] == claim.text
            for claim in claims
        )
        found = (
            self._checks(claims, query, answer, None, evidence)
            if placed
            else self.verify(claims, evidence)
        )
        return self.with_missing(
            one_check_each(claims, found), query, answer, evidence, completeness=completeness
        )

    def _checks(
        self,
        claims: Sequence[Claim],
        question: str,
        answer: str,
        start: int | None,
        evidence: Sequence[Evidence],
    ) -> tuple[ClaimCheck, ...]:
        """Return the checks of claims in one answer; ``start`` is where each begins there, None for
        its own place.
        """
        name = self.scorer.model.name
        texts = [chunk.text for chunk in evidence if chunk.text.strip()]
        if not texts or not claims:
            return tuple(each.check for each in unverifiable(claims, name))
        places = [(claim.start or 0) if start is None else start for claim in claims]
        markers = [
            (place + first, place + last)
            for claim, place in zip(claims, places, strict=True)
            for first, last in claim.markers
        ]
        try:
            tokens = self.tags(texts, question, without_stretches(answer, markers))
        except StepError as error:
            return tuple(each.check for each in unscored_batch(claims, error, name))
        return tuple(
            self._check(claim, place, tokens) for claim, place in zip(claims, places, strict=True)
        )

    def _check(self, claim: Claim, place: int, tokens: Sequence[TokenScore] | None) -> ClaimCheck:
        """Return the check of a claim that begins at ``place`` of the answer."""
        own = [
            token._replace(
                start=max(token.start - place, 0), end=min(token.end - place, len(claim.text))
            )
            for token in tokens or ()
            if token.start < place + len(claim.text) and token.end > place
        ]
        marked = tuple(marked_words(claim, own))
        highest = max((token.unsupported for token in own), default=None)
        if tokens is None:
            issue = TOO_LONG
        else:
            issue = (
                f"{describe_marked_words([each.claim_text for each in marked])}."
                if marked
                else NOTHING_MARKED
            )
        return ClaimCheck(
            claim=claim,
            verdict="unverifiable",
            support=None if highest is None else min(1 - highest, MOST_SUPPORT),
            confidence=None,
            marked=marked,
            issue=issue,
            judged_by=self.scorer.model.name,
        )

    def tags(
        self, passages: Sequence[str], question: str, read: UnmarkedAnswer
    ) -> tuple[TokenScore, ...] | None:
        """Return a score for each token, by its place in the answer; None where not all could be
        read.

        Passages that don't fit at once are read in parts. A token is then as unsupported as in the
        part that supports it most: a part that lacks the passage knows nothing about it.
        LettuceDetect's own code takes the highest instead, which marks whatever a part lacks.
        Raises StepError where the model fails.
        """
        language = language_of(self.scorer.model.name, self.scorer.model.languages)
        parts = self._parts(passages, question, read.text, language)
        if parts is None:
            return None
        lowest: list[TokenScore] = []
        for part in parts:
            found = self.scorer.tag(context_of(part, question, language), read.text)
            if found is None or (lowest and len(found) != len(lowest)):
                return None
            lowest = [
                min(pair, key=lambda each: each.unsupported)
                for pair in zip(lowest or found, found, strict=True)
            ]
        return tuple(
            token._replace(start=read.in_answer(token.start), end=read.in_answer(token.end - 1) + 1)
            for token in lowest
        )

    def _parts(
        self, passages: Sequence[str], question: str, answer: str, language: str
    ) -> list[list[str]] | None:
        """Group passages so that each group fits beside question and answer; None where that takes
        too many.
        """
        count = self.scorer.count
        # Beginning, middle and end of the pair: at most four marks (RoBERTa); each passage has its
        # number before it.
        left = (
            self.scorer.encoder.longest
            - count(answer)
            - count(context_of([""], question, language))
            - 4
        )
        if left < LEAST_PASSAGE:
            return None
        lead = count(f"{prompts()[language].passage} 99: ") + 1
        parts: list[list[str]] = [[]]
        used = 0
        for piece in (
            piece for passage in passages for piece in self._pieces(passage, left - lead)
        ):
            size = count(piece) + lead
            if parts[-1] and used + size > left:
                parts.append([])
                used = 0
            if len(parts) > MOST_PARTS or size > left:
                return None
            parts[-1].append(piece)
            used += size
        return parts

    def _pieces(self, passage: str, most: int) -> Iterator[str]:
        """Yield a passage, or runs of its sentences of at most ``most`` tokens; one sentence may be
        longer.
        """
        if self.scorer.count(passage) <= most:
            yield passage
            return
        begin, used = None, 0
        last = 0
        for sentence in split_sentences(passage):
            size = self.scorer.count(passage[sentence.start : sentence.end]) + 1
            if begin is not None and used + size > most:
                yield passage[begin:last]
                begin, used = None, 0
            begin = sentence.start if begin is None else begin
            used, last = used + size, sentence.end
        if begin is not None:
            yield passage[begin:last]


def without_stretches(text: str, stretches: Sequence[tuple[int, int]]) -> UnmarkedAnswer:
    """Return a text without some stretches, and where its pieces stood before.

    Blanks before a stretch go with it, so that "long [1]." is read as "long.".
    """
    kept: list[str] = []
    pieces: list[tuple[int, int]] = []
    length = at = 0
    for start, end in [*sorted(stretches), (len(text), len(text))]:
        if start > at or not pieces:
            piece = text[at : max(start, at)]
            if start < len(text):
                piece = piece.rstrip()
            pieces.append((length, at))
            kept.append(piece)
            length += len(piece)
        at = max(at, end)
    return UnmarkedAnswer("".join(kept), tuple(pieces))


def marked_words(claim: Claim, tokens: Sequence[TokenScore]) -> Iterator[MarkedWords]:
    """Yield runs of words that a tagger marks, by tokens whose places are offsets in the claim.

    A word is marked where any of its tokens is; words next to each other are one run. Citation
    markers assert nothing and are never marked.
    """
    found = iter(sorted(token for token in tokens if token.unsupported > UNSUPPORTED_FROM))
    token = next(found, None)
    runs: list[tuple[int, int]] = []
    for word in _WORD.finditer(claim.text):
        while token is not None and token.end <= word.start():
            token = next(found, None)
        if token is None:
            break
        if token.start >= word.end() or any(
            start < word.end() and word.start() < end for start, end in claim.markers
        ):
            continue
        if runs and not _WORD.search(claim.text, runs[-1][1], word.start()):
            runs[-1] = runs[-1][0], word.end()
        else:
            runs.append(word.span())
    for start, end in runs:
        yield MarkedWords(claim_start=start, claim_end=end, claim_text=claim.text[start:end])
