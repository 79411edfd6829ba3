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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

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
"""A token is marked above this probability. LettuceDetect also marks only if it's likelier than
support.
"""
MOST_PARTS = 4
"""Maximum number of parts that passages are split into. More would take minutes on a CPU."""
LEAST_PASSAGE = 32
"""Minimum number of tokens that must be left for passages. If fewer are left, the answer is too
long.
"""
MOST_SUPPORT = 0.5
"""The highest support of a claim. It's only used to order the queue, and doesn't confirm anything.
"""

NOTHING_MARKED = "Not confirmed: the tagger marks no words here, and it never confirms a claim."
TOO_LONG = (
    "Not confirmed: answer and evidence are longer than the tagger reads, so nothing was marked."
)

# Japanese, Chinese and Thai don't put spaces between words, so each character counts as a word.
# Otherwise a mark would extend over a whole clause.
_UNSPACED = "[぀-ヿ㐀-䶿一-鿿฀-๿]"
# A number is one word with its separators ("4.5", "1,500"). A sign is a word, because it can be the
# only error ("%" for a unit, "<" for ">"), but punctuation isn't.
_WORD = re.compile(
    rf"{_UNSPACED}|(?:(?!{_UNSPACED})[^\W_])++(?:[.,'’-](?:(?!{_UNSPACED})[^\W_])++)*+"
    r"|[%‰°€$£¥<>=≤≥±−]"
)


@cache
def prompts() -> dict[str, dict[str, str]]:
    """Return LettuceDetect's prompts by language and name."""
    file = resources.files("masis.integrations.local") / "tagger_prompts.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))


def language_of(name: str, languages: Sequence[str] | None) -> str:
    """Return the language of a model's prompts.

    LettuceDetect's models for one language have it in their names:
    ``lettucedect-210m-eurobert-de-v1`` is ``de``. For others, it's the only language of the card,
    or else English, as in LettuceDetect's code.
    """
    match = re.search(r"-([a-z]{2})-v\d", name.casefold())
    # The Chinese model is named with the country's code, cn, and not with the language's.
    from_name = {"cn": "zh"}.get(match[1], match[1]) if match else ""
    for language in (from_name, languages[0] if languages and len(languages) == 1 else ""):
        if language in prompts():
            return language
    return "en"


def context_of(passages: Sequence[str], question: str, language: str) -> str:
    """Return the prompt before the answer, like ``PromptUtils.format_context`` of LettuceDetect."""
    texts = prompts()[language]
    listed = "\n".join(
        f"{texts['passage']} {number}: {passage}" for number, passage in enumerate(passages, 1)
    )
    if not question.strip():
        return texts["without_question"].format(passages=listed)
    return texts["with_question"].format(question=question, count=len(passages), passages=listed)


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
        """Read the whole answer once, check every claim, and list missing points if requested."""
        has_spans = all(
            claim.start is not None and answer[claim.start : claim.end] == claim.text
            for claim in claims
        )
        checks = (
            self._checks(claims, query, answer, None, evidence)
            if has_spans
            else self.verify(claims, evidence)
        )
        return self.add_missing_points(
            one_check_each(claims, checks), query, answer, evidence, completeness=completeness
        )

    def _checks(
        self,
        claims: Sequence[Claim],
        question: str,
        answer: str,
        start: int | None,
        evidence: Sequence[Evidence],
    ) -> tuple[ClaimCheck, ...]:
        """Check claims of one answer. ``start`` replaces their own positions, unless it's None."""
        name = self.scorer.model.name
        texts = [chunk.text for chunk in evidence if chunk.text.strip()]
        if not texts or not claims:
            return tuple(verdict.check for verdict in unverifiable(claims, name))
        starts = [(claim.start or 0) if start is None else start for claim in claims]
        markers = [
            (offset + first, offset + last)
            for claim, offset in zip(claims, starts, strict=True)
            for first, last in claim.markers
        ]
        try:
            tokens = self.tags(texts, question, answer, markers)
        except StepError as error:
            return tuple(verdict.check for verdict in unscored_batch(claims, error, name))
        return tuple(
            self._check(claim, offset, tokens) for claim, offset in zip(claims, starts, strict=True)
        )

    def _check(self, claim: Claim, start: int, tokens: Sequence[TokenScore] | None) -> ClaimCheck:
        """Check a claim that begins at ``start`` in the answer."""
        claim_tokens = [
            token._replace(
                start=max(token.start - start, 0), end=min(token.end - start, len(claim.text))
            )
            for token in tokens or ()
            if token.start < start + len(claim.text) and token.end > start
        ]
        marked = tuple(marked_words(claim, claim_tokens))
        highest = max((token.unsupported for token in claim_tokens), default=None)
        if tokens is None:
            issue = TOO_LONG
        else:
            issue = (
                f"{describe_marked_words([words.claim_text for words in marked])}."
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
        self,
        passages: Sequence[str],
        question: str,
        answer: str,
        markers: Sequence[tuple[int, int]] = (),
    ) -> tuple[TokenScore, ...] | None:
        """Score each token of an answer without its markers. Returns None if it's too long.

        Passages that don't fit at once are read in parts. A token then has the score of the part
        that supports it most, because the other parts lack the passage it's from. LettuceDetect's
        own code uses the highest score instead, which marks everything that any part lacks. Raises
        StepError if the model fails.
        """
        text, offsets = remove_stretches(answer, markers)
        language = language_of(self.scorer.model.name, self.scorer.model.languages)
        parts = self._parts(passages, question, text, language)
        if parts is None:
            return None
        lowest: list[TokenScore] = []
        for part in parts:
            tokens = self.scorer.tag(context_of(part, question, language), text)
            # The answer is the same in every part, so the tokens must be the same too.
            if tokens is None or (lowest and len(tokens) != len(lowest)):
                return None
            lowest = [
                min(pair, key=lambda token: token.unsupported)
                for pair in zip(lowest or tokens, tokens, strict=True)
            ]
        return tuple(
            # The end is exclusive and may be behind the last character, which has no offset.
            token._replace(start=offsets[token.start], end=offsets[token.end - 1] + 1)
            for token in lowest
        )

    def _parts(
        self, passages: Sequence[str], question: str, answer: str, language: str
    ) -> list[list[str]] | None:
        """Group passages so that each group fits the input together with question and answer.

        Returns None if that needs too many groups.
        """
        count = self.scorer.count
        # Subtract 4 for the special tokens around and between the texts (RoBERTa has the most).
        remaining = (
            self.scorer.encoder.longest
            - count(answer)
            - count(context_of([""], question, language))
            - 4
        )
        if remaining < LEAST_PASSAGE:
            return None
        lead = count(f"{prompts()[language]['passage']} 99: ") + 1  # each passage's number
        parts: list[list[str]] = [[]]
        used = 0
        for piece in (
            piece for passage in passages for piece in self._pieces(passage, remaining - lead)
        ):
            size = count(piece) + lead
            # In order, so that neighboring sentences of a passage stay together if they fit.
            if parts[-1] and used + size > remaining:
                parts.append([])
                used = 0
            if len(parts) > MOST_PARTS or size > remaining:
                return None
            parts[-1].append(piece)
            used += size
        return parts

    def _pieces(self, passage: str, most: int) -> Iterator[str]:
        """Yield a passage, or runs of its sentences with at most ``most`` tokens.

        A single sentence can be longer.
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


def remove_stretches(text: str, stretches: Sequence[tuple[int, int]]) -> tuple[str, list[int]]:
    """Remove stretches from a text, and return the original offset of each remaining character.

    Spaces before a stretch are removed too, so that "long [1]." becomes "long.".
    """
    offsets: list[int] = []
    position = 0
    for start, end in [*sorted(stretches), (len(text), len(text))]:
        piece = text[position:start]
        if start < len(text):
            piece = piece.rstrip()
        offsets += range(position, position + len(piece))
        position = max(position, end)
    return "".join(text[offset] for offset in offsets), offsets


def marked_words(claim: Claim, tokens: Sequence[TokenScore]) -> Iterator[MarkedWords]:
    """Yield runs of marked words. The tokens' positions are offsets in the claim.

    A word is marked if any of its tokens is, and adjacent marked words are one run. Citation
    markers don't assert anything and are never marked.
    """
    unsupported = iter(sorted(token for token in tokens if token.unsupported > UNSUPPORTED_FROM))
    token = next(unsupported, None)
    runs: list[tuple[int, int]] = []
    for word in _WORD.finditer(claim.text):
        while token is not None and token.end <= word.start():
            token = next(unsupported, None)
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
