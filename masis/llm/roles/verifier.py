"""The verifier with a model: claims extracted, then verified in batches side by side, with what is missing beside them.

DRAFT-CRITIQUE-EXTRACT, DRAFT-CRITIQUE-VERIFY and DRAFT-CRITIQUE-COMPLETENESS; claims are verified together where
possible and extractions cached (DRAFT-CRITIQUE-CACHE). Temperatures: DRAFT-CRITIQUE-TEMPERATURES.
"""

from __future__ import annotations

import hashlib
import logging
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from masis.audit.assertions import asserts, citations_by_sentence, claim_within, sentence_claim
from masis.audit.claims import Checked
from masis.audit.concurrency import run_concurrently
from masis.audit.quotes import Located, located
from masis.audit.scores import normalised
from masis.errors import StepError
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
from masis.llm.roles.quotes import Chunks
from masis.llm.roles.replies import ClaimsReply, CompletenessReply, LeftOut, VerdictsReply
from masis.llm.roles.verdicts import Judged, failed, judged, of_passages, unverifiable, with_references
from masis.llm.roles.windows import Fitted, ask_within_context
from masis.schema.audit import CitationAudit, Claim, ClaimCheck, JudgedBy, MissingPoint, Sentence
from masis.schema.base import Unscored
from masis.schema.case import Evidence
from masis.settings import Settings

# What an answer asserts, as a model lists it, tied to the words of the answer.
#
# A claim whose quote is not in the answer is not judged: nobody said it. Every sentence that asserts something and in
# which no claim stands is one itself, so that a list cut short, or cut by what the answer tells the model, hides
# nothing.

log = logging.getLogger(__name__)

_LEAD = re.compile(r"\W*\d{0,3}\W*")
"""What opens a list item and says nothing."""


class Extracted(NamedTuple):
    """One assertion as the model gave it: words of the answer, and the same to be understood alone."""

    quote: str
    statement: str


class Extractions:
    """Extractions by answer, question, model and prompt, the latest ``most`` of them; safe to use from several threads.

    DRAFT-CRITIQUE-CACHE: an answer that comes again is not asked about again.
    """

    def __init__(self, most: int = 512) -> None:
        self._most = most
        self._kept: OrderedDict[str, tuple[Extracted, ...]] = OrderedDict()
        self._lock = threading.Lock()

    @staticmethod
    def key(*parts: str) -> str:
        """The key for these texts."""
        return hashlib.sha256("\0".join(f"{len(part)}:{part}" for part in parts).encode()).hexdigest()

    def get(self, key: str) -> tuple[Extracted, ...] | None:
        """What was extracted before, or None."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def keep(self, key: str, found: tuple[Extracted, ...]) -> None:
        """Keep an extraction; the one not asked for longest gives way."""
        with self._lock:
            self._kept[key] = found
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)


def located_claims(found: Sequence[Extracted], answer: str, audit: CitationAudit) -> tuple[Claim, ...]:
    """The claims in the order of the answer, each with its place, sentence, markers and citations."""
    inside = citations_by_sentence(audit)
    placed, unmarked = list(_placed(found, answer, audit)), _unmarked(answer, audit)
    if len(placed) < len(found):
        log.info("%d of %d claims are not in the answer and were left out", len(found) - len(placed), len(found))
    made: dict[tuple[int, int, str], Claim] = {}
    covered: set[int] = set()
    for place, numbers, statement in placed:
        covered.update(numbers)
        place = _widened(place, [audit.sentences[number] for number in numbers], unmarked)
        text = answer[place.start : place.end]
        said = "" if _plain(statement) == _plain(text) else statement
        cited = [citation for number in numbers for citation in inside[number]]
        made.setdefault((place.start, place.end, said), claim_within(numbers[0], text, place.start, cited, said))
    for number, sentence in enumerate(audit.sentences):
        if asserts(sentence) and number not in covered:
            made[sentence.start, sentence.end, ""] = sentence_claim(number, sentence, inside[number])
    return tuple(sorted(made.values(), key=lambda claim: (claim.start or 0, claim.end or 0)))


def _placed(found: Sequence[Extracted], answer: str, audit: CitationAudit) -> Iterator[tuple[Located, list[int], str]]:
    """Each claim that stands in the answer, with the numbers of the sentences it stands in."""
    markers = [(citation.marker_start, citation.marker_end) for citation in audit.citations]
    for quote, statement in found:
        place = located(quote, answer, markers)
        if place is None:
            continue
        numbers = [
            number
            for number, sentence in enumerate(audit.sentences)
            if sentence.start < place.end and sentence.end > place.start
        ]
        if numbers:
            yield place, numbers, statement.strip()


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
    return " ".join(text.split()).rstrip(".").casefold()


EXTRACT, VERIFY, COMPLETENESS = "claims_extract", "claims_verify", "completeness"
MISSING_MOST = 8
EXTRACT_TOKENS_LEAST, EXTRACT_TOKENS_MOST = 1_000, 8_000
VERIFY_TOKENS, VERIFY_TOKENS_A_CLAIM = 300, 450
COMPLETENESS_TOKENS = 1_500
EXTRACT_TEMPERATURE = VERIFY_TEMPERATURE = 0.1
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

    ``claims_batch`` of the settings go into one call; without ``check_factual`` no claim is looked for.
    """

    asker: Asker
    settings: Settings
    extractions: Extractions = field(default=EXTRACTIONS, repr=False)

    @property
    def judged_by(self) -> JudgedBy:
        """The model, and the versions of the three prompts."""
        versions = ", ".join(load(name).version for name in (EXTRACT, VERIFY, COMPLETENESS))
        return JudgedBy(model=self.asker.name, version=versions)

    def extract(self, answer: str, audit: CitationAudit, query: str) -> tuple[Claim, ...]:
        """What the answer asserts, in its order.

        Raises ProviderFailed where the provider failed, BadReply (CRITIC-ERR-001) where no list of claims came.
        """
        if not self.settings.check_factual or not answer.strip():
            return ()
        key = Extractions.key(self.asker.name, load(EXTRACT).version, query, answer)
        found = self.extractions.get(key)
        if found is None:
            found = self._ask_for_claims(answer, query)
            self.extractions.keep(key, found)
        return located_claims(found, answer, audit)

    def verify(self, claims: Sequence[Claim], evidence: Sequence[Evidence]) -> tuple[ClaimCheck, ...]:
        """One check for each claim, in order; those of a batch that failed are unscored."""
        known = Chunks(evidence)
        if not known.readable:
            return tuple(each.check for each in unverifiable(claims, self.asker.name))
        parts = run_concurrently(self._batches(claims, None, evidence, known))
        return self._checks(claims, parts, known)

    def check(
        self, claims: Sequence[Claim], query: str, answer: str, evidence: Sequence[Evidence], *, completeness: bool
    ) -> Checked:
        """Each claim judged and, if asked for, what is left out, all calls side by side."""
        known = Chunks(evidence)
        if not known.readable:
            return Checked(tuple(each.check for each in unverifiable(claims, self.asker.name)))
        tasks = self._batches(claims, query, evidence, known)
        if completeness:
            tasks.append(partial(self._missing, question_and_evidence(query, evidence), answer, known))
        parts = run_concurrently(tasks)
        checks = self._checks(claims, parts[: len(tasks) - completeness], known)
        if not completeness:
            return Checked(checks)
        last = parts[-1]
        if isinstance(last, StepError):
            return Checked(checks, (), Unscored(reason=str(last), code=last.code, raw=last.raw))
        return Checked(checks, last.missing)

    def _ask_for_claims(self, text: str, query: str) -> tuple[Extracted, ...]:
        reply = self.asker.ask(
            extract_prompt(text, query, self.asker.control.fence),
            ClaimsReply,
            max_tokens=min(EXTRACT_TOKENS_MOST, EXTRACT_TOKENS_LEAST + len(text)),
            temperature=EXTRACT_TEMPERATURE,
        )
        return tuple(Extracted(each.quote, each.claim) for each in reply.claims)

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
        found = judged(batch, reply.verdicts, known, self.asker.name)
        if fitted.whole:
            return _Part(found)
        self.asker.control.calls.warn(
            "evidence_cut",
            f"The evidence does not fit the context of {self.asker.name}: each claim was judged by the passages that "
            f"share most words with it, {fitted.share:.0%} of the evidence for the first. What no passage supports is "
            f"not confirmed rather than unsupported. {LARGER_CONTEXT}",
        )
        return _Part(tuple(of_passages(each, fitted.share) for each in found))

    def _checks(
        self, claims: Sequence[Claim], parts: Sequence[_Part | StepError], known: Chunks
    ) -> tuple[ClaimCheck, ...]:
        found = [each for part in parts if isinstance(part, _Part) for each in part.judged]
        return with_references(found, known)

    def _missing(self, shared: Sequence[Section], text: str, known: Chunks) -> _Part:
        reply = self.asker.ask(
            completeness_prompt(text, shared, self.asker.control.fence),
            CompletenessReply,
            max_tokens=COMPLETENESS_TOKENS,
            temperature=COMPLETENESS_TEMPERATURE,
        )
        points = (missing_point(each, known) for each in reply.missing if each.description.strip())
        return _Part(missing=tuple(dict.fromkeys(points))[:MISSING_MOST])


def extract_prompt(text: str, query: str, mark: str) -> Prompt:
    """What is sent to find the claims: question and answer; what the evidence says must not colour them."""
    return compose(EXTRACT, mark, [question(query)], [answer(text)])


def verify_prompt(batch: Sequence[Claim], shared: Sequence[Section], mark: str) -> Prompt:
    """What is sent to verify claims, numbered from 1, their markers left out."""
    listed = [
        {"number": number, "claim": unmarked(claim), "meaning": claim.statement or None, "cited": claim.cited}
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
