"""The verifier with a model: what an answer asserts, a verdict on each claim, and what is missing.

One call does all three where the answer is short enough: the reply lists the claims first and judges them second.
In steps, it is a call for the claims, one for each batch of verdicts and one for what is missing, side by side: that
is how draft critique asks (DRAFT-CRITIQUE-EXTRACT, DRAFT-CRITIQUE-VERIFY, DRAFT-CRITIQUE-COMPLETENESS; extractions are
cached, DRAFT-CRITIQUE-CACHE; DRAFT-CRITIQUE-TEMPERATURES), and how long answers and evidence beyond a model's context
are judged.
"""

from __future__ import annotations

import hashlib
import logging
import math
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple, TypeVar

from masis.audit.claims import Checked
from masis.audit.control.concurrency import run_concurrently
from masis.audit.measures.scores import normalised
from masis.audit.text.assertions import asserts, citations_by_sentence, claim_within
from masis.audit.text.comparison import sentence_form
from masis.audit.text.quotes import Located, located
from masis.errors import ContextFull, StepError
from masis.llm.providers.provider_errors import LARGER_CONTEXT
from masis.llm.roles.prompting import (
    Asker,
    Prompt,
    Section,
    answer,
    chunks,
    compose,
    load,
    question,
    question_and_evidence,
    rows,
)
from masis.llm.roles.replies import (
    CheckedClaimsReply,
    ClaimsReply,
    CompletenessReply,
    LeftOut,
    ListedClaim,
    VerdictsReply,
)
from masis.llm.roles.verdicts import (
    Chunks,
    Judged,
    failed,
    judged,
    number_of,
    of_passages,
    unverifiable,
    with_references,
)
from masis.schema.audit import CitationAudit, Claim, ClaimCheck, JudgedBy, MissingPoint, Sentence
from masis.schema.base import Unscored
from masis.schema.case import Evidence
from masis.settings import Settings

# Evidence that doesn't fit a model's context: claims are judged by the passages that share most words with them.
#
# A context is learned by what a server refuses: the evidence is halved until a call fits, and the run remembers what
# did. What wasn't read can't be spoken of: a claim that its passages don't support is unverifiable, not unsupported.

T = TypeVar("T")

WINDOW = 600
"""Characters of one passage, about; it ends with a sentence where there is one."""
LEAST = 2 * WINDOW
"""Characters of evidence below which no more is left out: what doesn't fit then is not too long because of it."""
LEFT_OUT = "\n[...]\n"
"""Stands between two passages of a chunk where something was left out."""
_PASSAGE = re.compile(rf"(?s).{{1,{WINDOW}}}(?:(?<=[.!?\n])(?=\s)|\Z)|.{{1,{WINDOW}}}(?=\s)|.{{1,{WINDOW}}}")
_WORD = re.compile(r"\w+")


class Fitted(NamedTuple):
    """The evidence that a call sent; ``share`` is how much of it was sent, 1 where nothing was left out."""

    evidence: Sequence[Evidence]
    share: float = 1.0


def ask_within_context(
    asker: Asker, evidence: Sequence[Evidence], about: Sequence[str], ask: Callable[[Fitted], T]
) -> tuple[T, Fitted]:
    """Ask with as much of the evidence as fits the model's context: all, or what shares most words with ``about``.

    Raises what ``ask`` raises; ContextFull only where hardly any evidence fits.
    """
    room = asker.control.evidence_room
    while True:
        fitted = narrowed(evidence, about, room.get(asker.name, math.inf))
        try:
            return ask(fitted), fitted
        except ContextFull:
            sent = sum(len(chunk.text) for chunk in fitted.evidence)
            if sent // 2 < LEAST:
                raise
            room[asker.name] = min(room.get(asker.name, sent), sent // 2)


def narrowed(evidence: Sequence[Evidence], about: Sequence[str], room: float) -> Fitted:
    """The evidence cut to so many characters: each text of ``about`` in turn takes the passage most like it.

    Chunks keep their ids and order, and passages the order in which they stand; a chunk of which nothing is sent is
    left out.
    """
    total = sum(len(chunk.text) for chunk in evidence)
    if total <= room:
        return Fitted(evidence)
    passages = [(at, text) for at, chunk in enumerate(evidence) for text in _PASSAGE.findall(chunk.text)]
    words = [_words(text) for _, text in passages]
    spread = Counter(word for each in words for word in each)
    wanted = [_ranked(_words(text), words, spread) for text in about]
    chosen: set[int] = set()
    left = room
    for place in range(len(passages)):
        for ranked in wanted:
            number = ranked[place]
            if number not in chosen and len(passages[number][1]) <= left:
                chosen.add(number)
                left -= len(passages[number][1])
    kept = [passages[number] for number in sorted(chosen)]
    chunks = tuple(
        evidence[at].model_copy(update={"text": LEFT_OUT.join(text for _, text in group)})
        for at, group in ((at, list(group)) for at, group in groupby(kept, key=lambda each: each[0]))
    )
    return Fitted(chunks, (room - left) / total)


def _ranked(claim: frozenset[str], passages: Sequence[frozenset[str]], spread: Counter[str]) -> list[int]:
    """The numbers of the passages, that which shares the most telling words with the claim first."""
    worth = {word: math.log(1 + len(passages) / spread[word]) for word in claim if word in spread}
    return sorted(range(len(passages)), key=lambda n: -sum(worth.get(word, 0.0) for word in passages[n] & claim))


def _words(text: str) -> frozenset[str]:
    return frozenset(word for word in _WORD.findall(text.casefold()) if len(word) > 2 or word.isdigit())


# What an answer asserts, as a model lists it, tied to the words of the answer.
#
# A claim whose quote is not in the answer is not judged: nobody said it. Every sentence that asserts something and in
# which no claim stands is one itself, so that a list cut short, or cut by what the answer tells the model, hides
# nothing.

log = logging.getLogger(__name__)

_LEAD = re.compile(r"\W*\d{0,3}\W*")
"""What opens a list item and says nothing."""


class Extractions:
    """Extractions by answer, question, model and prompt, the latest ``most`` of them; safe to use from several threads.

    DRAFT-CRITIQUE-CACHE: an answer that comes again is not asked about again.
    """

    def __init__(self, most: int = 512) -> None:
        self._most = most
        self._kept: dict[str, Sequence[ListedClaim]] = {}
        self._lock = threading.Lock()

    @staticmethod
    def key(*parts: str) -> str:
        """The key for these texts."""
        return hashlib.sha256("\0".join(f"{len(part)}:{part}" for part in parts).encode()).hexdigest()

    def get(self, key: str) -> Sequence[ListedClaim] | None:
        """What was extracted before, or None."""
        with self._lock:
            if key in self._kept:
                self._kept[key] = self._kept.pop(key)  # behind all others
            return self._kept.get(key)

    def keep(self, key: str, found: Sequence[ListedClaim]) -> None:
        """Keep an extraction; the one not asked for longest gives way."""
        with self._lock:
            self._kept[key] = found
            if len(self._kept) > self._most:
                del self._kept[next(iter(self._kept))]


def located_claims(found: Sequence[ListedClaim], answer: str, audit: CitationAudit) -> tuple[Claim, ...]:
    """The claims in the order of the answer, each with its place, sentence, markers and citations."""
    placed = _placed(found, answer, audit)
    return in_order([*placed.values(), *_unlisted(placed.values(), audit)])


def in_order(claims: Iterable[Claim]) -> tuple[Claim, ...]:
    """The claims as they stand in the answer, each once."""
    return tuple(sorted(dict.fromkeys(claims), key=lambda claim: (claim.start or 0, claim.end or 0)))


def _placed(found: Sequence[ListedClaim], answer: str, audit: CitationAudit) -> dict[int, Claim]:
    """Each claim that stands in the answer, by its place in the list."""
    inside, unmarked = citations_by_sentence(audit), _unmarked(answer, audit)
    markers = [(citation.marker_start, citation.marker_end) for citation in audit.citations]
    placed: dict[int, Claim] = {}
    for at, each in enumerate(found):
        place = _place_of(each, answer, audit, markers)
        numbers = [] if place is None else _sentences_at(place, audit)
        if place is None or not numbers:
            continue
        place = _widened(place, [audit.sentences[number] for number in numbers], unmarked)
        text = answer[place.start : place.end]
        statement = each.meaning.strip()
        alone = "" if _plain(statement) == _plain(text) else statement
        cited = [citation for number in numbers for citation in inside[number]]
        placed[at] = claim_within(numbers[0], text, place.start, cited, alone)
    if len(placed) < len(found):
        log.info("%d of %d claims are not in the answer and were left out", len(found) - len(placed), len(found))
    return placed


def _place_of(
    found: ListedClaim, answer: str, audit: CitationAudit, markers: Sequence[tuple[int, int]]
) -> Located | None:
    """Where a claim stands: the words in their sentence, else anywhere; without words, the sentence."""
    number, sentence = number_of(found.sentence), None
    if number is not None and 1 <= number <= len(audit.sentences):
        sentence = audit.sentences[number - 1]
    if not found.words.strip():
        return Located(sentence.start, sentence.end) if sentence else None
    if sentence is not None:
        shifted = [(start - sentence.start, end - sentence.start) for start, end in markers if start >= sentence.start]
        if place := located(found.words, answer[sentence.start : sentence.end], shifted):
            return Located(sentence.start + place.start, sentence.start + place.end)
    return located(found.words, answer, markers)


def _sentences_at(place: Located, audit: CitationAudit) -> list[int]:
    return [n for n, each in enumerate(audit.sentences) if each.start < place.end and each.end > place.start]


def _unlisted(claims: Iterable[Claim], audit: CitationAudit) -> list[Claim]:
    """Each sentence that asserts something and that no claim stands in, as a claim: no list cut short hides one."""
    spans = [(claim.start or 0, claim.end or 0) for claim in claims]
    inside = citations_by_sentence(audit)
    return [
        claim_within(number, sentence.text, sentence.start, inside[number])
        for number, sentence in enumerate(audit.sentences)
        if asserts(sentence) and not any(sentence.start < end and sentence.end > start for start, end in spans)
    ]


def _widened(place: Located, sentences: Sequence[Sentence], unmarked: str) -> Located:
    """The whole sentence where all of it is quoted but markers, stops and the number of a list item."""
    start, end = sentences[0].start, sentences[-1].end
    before, behind = unmarked[start : place.start], unmarked[place.end : end]
    whole = _LEAD.fullmatch(before) is not None and not any(map(str.isalnum, behind))
    return Located(start, end) if whole else place


def _unmarked(answer: str, audit: CitationAudit) -> str:
    """The answer with blanks for its markers."""
    parts, at = [], 0
    for start, end in sorted({(citation.marker_start, citation.marker_end) for citation in audit.citations}):
        parts.append(answer[at:start])
        parts.append(" " * (end - max(start, at)))
        at = max(at, end)
    return "".join(parts) + answer[at:]


def _plain(text: str) -> str:
    return sentence_form(text)


CLAIMS, EXTRACT, VERIFY, COMPLETENESS = "claims", "claims_extract", "claims_verify", "completeness"
MISSING_MOST = 8
CLAIMS_TOKENS, CLAIMS_TOKENS_A_SENTENCE = 1_500, 700
EXTRACT_TOKENS_LEAST, EXTRACT_TOKENS_MOST = 1_000, 8_000
VERIFY_TOKENS, VERIFY_TOKENS_A_CLAIM = 300, 450
COMPLETENESS_TOKENS = 1_500
CLAIMS_TEMPERATURE = EXTRACT_TEMPERATURE = VERIFY_TEMPERATURE = 0.1
COMPLETENESS_TEMPERATURE = 0.2

EXTRACTIONS = Extractions()
"""What was extracted in this process."""


class _Part(NamedTuple):
    """What one of the calls that go side by side gives."""

    judged: tuple[Judged, ...] = ()
    missing: tuple[MissingPoint, ...] = ()


@dataclass(frozen=True)
class ModelVerifier:
    """Finds what an answer asserts and judges each assertion by the evidence.

    ``claims_batch`` of the settings go into one call; without ``check_factual`` no claim is looked for. With
    ``in_steps`` claims, verdicts and what is missing are always asked for in calls of their own.
    """

    asker: Asker
    settings: Settings
    extractions: Extractions = field(default=EXTRACTIONS, repr=False)
    in_steps: bool = False

    @property
    def judged_by(self) -> JudgedBy:
        """The model, and the versions of the prompts."""
        names = (EXTRACT, VERIFY, COMPLETENESS) if self.in_steps else (CLAIMS, EXTRACT, VERIFY, COMPLETENESS)
        return JudgedBy(model=self.asker.name, version=", ".join(load(name).version for name in names))

    def check_answer(
        self, answer: str, audit: CitationAudit, query: str, evidence: Sequence[Evidence], *, completeness: bool
    ) -> tuple[tuple[Claim, ...], Checked]:
        """The claims of the answer, each judged, and if asked for what is left out: in one call where that is enough.

        Raises ProviderFailed where the provider failed, BadReply (CRITIC-ERR-001) where no list of claims came.
        """
        known = Chunks(evidence)
        sentences = sum(map(asserts, audit.sentences))
        fits = 0 < sentences <= self.settings.claims_batch
        if fits and known.readable and self.settings.check_factual and not self.in_steps:
            with suppress(ContextFull):  # in steps, each claim goes with as much of the evidence as fits
                return self._at_once(answer, audit, query, evidence, known, completeness)
        found = self.extract(answer, audit, query)
        return found, self.check(found, query, answer, evidence, completeness=completeness)

    def _at_once(
        self,
        text: str,
        audit: CitationAudit,
        query: str,
        evidence: Sequence[Evidence],
        known: Chunks,
        completeness: bool,
    ) -> tuple[tuple[Claim, ...], Checked]:
        reply = self.asker.ask(
            claims_prompt(audit, question_and_evidence(query, evidence), self.asker.control.fence),
            CheckedClaimsReply,
            max_tokens=CLAIMS_TOKENS + CLAIMS_TOKENS_A_SENTENCE * len(audit.sentences),
            temperature=CLAIMS_TEMPERATURE,
        )
        placed = _placed(reply.claims, text, audit)
        numbers = claim_numbers(reply.claims)
        listed = {numbers[at]: claim for at, claim in placed.items()}
        found = in_order([*listed.values(), *_unlisted(listed.values(), audit)])
        given = {each.check.claim: each for each in judged(listed, reply.verdicts, known, self.asker.name, numbers)}
        # A sentence that the list passed over, or a claim without a verdict, is asked about on its own: neither a
        # careless reply nor an answer that tells the model what to skip keeps it from being judged.
        left = [claim for claim in found if claim not in given or given[claim].check.verdict == "unscored"]
        parts = run_concurrently(self._batches(left, query, evidence, known))
        for part in parts:
            if isinstance(part, _Part):
                given.update({each.check.claim: each for each in part.judged})
        missing = self._points(reply.missing, known) if completeness else ()
        return found, Checked(with_references([given[claim] for claim in found], known), missing)

    def extract(self, answer: str, audit: CitationAudit, query: str) -> tuple[Claim, ...]:
        """What the answer asserts, in its order.

        Raises ProviderFailed where the provider failed, BadReply (CRITIC-ERR-001) where no list of claims came.
        """
        if not self.settings.check_factual or not answer.strip():
            return ()
        key = Extractions.key(self.asker.name, load(EXTRACT).version, query, answer)
        found = self.extractions.get(key)
        if found is None:
            found = self.asker.ask(
                extract_prompt(audit, query, self.asker.control.fence),
                ClaimsReply,
                max_tokens=min(EXTRACT_TOKENS_MOST, EXTRACT_TOKENS_LEAST + len(answer)),
                temperature=EXTRACT_TEMPERATURE,
            ).claims
            self.extractions.keep(key, found)
        return located_claims(found, answer, audit)

    def verify(self, claims: Sequence[Claim], evidence: Sequence[Evidence]) -> tuple[ClaimCheck, ...]:
        """One check for each claim, in order; those of a batch that failed are unscored."""
        return self.check(claims, None, "", evidence, completeness=False).checks

    def check(
        self,
        claims: Sequence[Claim],
        query: str | None,
        answer: str,
        evidence: Sequence[Evidence],
        *,
        completeness: bool,
    ) -> Checked:
        """Each claim judged, without a question by itself, and, if asked for, what is left out; all side by side."""
        known = Chunks(evidence)
        if not known.readable:
            return Checked(tuple(each.check for each in unverifiable(claims, self.asker.name)))
        tasks = self._batches(claims, query, evidence, known)
        if completeness:
            tasks.append(partial(self._missing, question_and_evidence(query or "", evidence), answer, known))
        parts = run_concurrently(tasks)
        checks = with_references([each for part in parts if isinstance(part, _Part) for each in part.judged], known)
        last = parts[-1] if completeness else _Part()
        if isinstance(last, StepError):
            return Checked(checks, (), Unscored.of(last))
        return Checked(checks, last.missing)

    def _batches(
        self, claims: Sequence[Claim], query: str | None, evidence: Sequence[Evidence], known: Chunks
    ) -> list[Callable[[], _Part]]:
        size = self.settings.claims_batch
        return [
            partial(self._verdicts, claims[first : first + size], query, evidence, known)
            for first in range(0, len(claims), size)
        ]

    def _verdicts(
        self, batch: Sequence[Claim], query: str | None, evidence: Sequence[Evidence], known: Chunks
    ) -> _Part:
        def ask(fitted: Fitted) -> VerdictsReply:
            sent = fitted.evidence
            shared = chunks(sent) if query is None else question_and_evidence(query, sent)
            return self.asker.ask(
                verify_prompt(batch, shared, self.asker.control.fence),
                VerdictsReply,
                max_tokens=VERIFY_TOKENS + VERIFY_TOKENS_A_CLAIM * len(batch),
                temperature=VERIFY_TEMPERATURE,
            )

        about = [claim.statement or unmarked(claim) for claim in batch]
        try:
            reply, fitted = ask_within_context(self.asker, evidence, about, ask)
        except StepError as error:
            return _Part(failed(batch, error, self.asker.name))
        found = judged(dict(enumerate(batch, 1)), reply.verdicts, known, self.asker.name)
        if fitted.share >= 1.0:
            return _Part(found)
        self.asker.control.calls.warn(
            "evidence_cut",
            f"The evidence does not fit the context of {self.asker.name}: each claim was judged by the passages that "
            f"share most words with it, {fitted.share:.0%} of the evidence for the first. What no passage supports is "
            f"not confirmed rather than unsupported. {LARGER_CONTEXT}",
        )
        return _Part(tuple(of_passages(each, fitted.share) for each in found))

    def _missing(self, shared: Sequence[Section], text: str, known: Chunks) -> _Part:
        reply = self.asker.ask(
            completeness_prompt(text, shared, self.asker.control.fence),
            CompletenessReply,
            max_tokens=COMPLETENESS_TOKENS,
            temperature=COMPLETENESS_TEMPERATURE,
        )
        return _Part(missing=self._points(reply.missing, known))

    def _points(self, missing: Sequence[LeftOut], known: Chunks) -> tuple[MissingPoint, ...]:
        points = (missing_point(each, known) for each in missing if each.description.strip())
        return tuple(dict.fromkeys(points))[:MISSING_MOST]


def claims_prompt(audit: CitationAudit, shared: Sequence[Section], mark: str) -> Prompt:
    """What is sent to have an answer's claims found and judged, and what it leaves out, in one reply."""
    return compose(CLAIMS, mark, shared, [sentence_rows(audit, cites=True)])


def extract_prompt(audit: CitationAudit, query: str, mark: str) -> Prompt:
    """What is sent to find the claims: question and answer; what the evidence says must not colour them."""
    return compose(EXTRACT, mark, [question(query)], [sentence_rows(audit, cites=False)])


def sentence_rows(audit: CitationAudit, *, cites: bool) -> Section:
    """The sentences of an answer, numbered, so that a reply can name one without copying it."""
    listed = []
    for number, sentence in enumerate(audit.sentences, 1):
        row: dict[str, Any] = {"sentence": number, "text": sentence.text}
        if cites and sentence.citation_ids:
            row["cites"] = sentence.citation_ids
        listed.append(row if asserts(sentence) else row | {"asserts": False})
    return rows("ANSWER", listed)


def claim_numbers(claims: Sequence[ListedClaim]) -> tuple[int, ...]:
    """The numbers that the verdicts go by: as the model gave them, or by place where it gave one twice or none."""
    given = [number_of(each.number) for each in claims]
    known = [number for number in given if number is not None]
    return tuple(known) if len(set(known)) == len(claims) else tuple(range(1, len(claims) + 1))


def verify_prompt(batch: Sequence[Claim], shared: Sequence[Section], mark: str) -> Prompt:
    """What is sent to verify claims, numbered from 1, their markers left out."""
    listed = [
        {"number": number, "claim": unmarked(claim), "meaning": claim.statement or None, "cites": claim.cited}
        for number, claim in enumerate(batch, 1)
    ]
    return compose(VERIFY, mark, shared, [rows("CLAIMS", listed)])


def completeness_prompt(text: str, shared: Sequence[Section], mark: str) -> Prompt:
    """What is sent to find what is missing."""
    return compose(COMPLETENESS, mark, shared, [answer(text)])


def unmarked(claim: Claim) -> str:
    """The claim's words without its citation markers."""
    parts, at = [], 0
    for start, end in sorted(claim.markers):
        parts.append(claim.text[at:start])
        at = max(at, end)
    return "".join([*parts, claim.text[at:]]).strip()


def missing_point(left_out: LeftOut, known: Chunks) -> MissingPoint:
    """A point with its place in the evidence, where the chunk it names says what is quoted."""
    chunk = known.id_of(left_out.evidence_id) if left_out.evidence_id else None
    place = located(left_out.quote, known.texts[chunk]) if chunk and left_out.quote else None
    weight = normalised("importance", left_out.importance).value
    return MissingPoint(
        description=left_out.description.strip(),
        evidence_id=chunk,
        start=place.start if place else None,
        end=place.end if place else None,
        weight=0.5 if weight is None else weight,
    )
