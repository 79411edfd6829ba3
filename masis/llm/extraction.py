"""What an answer asserts, as a model lists it, tied to the words of the answer.

A claim whose quote is not in the answer is not judged: nobody said it. Every sentence that asserts something and in
which no claim stands is one itself, so that a list cut short, or cut by what the answer tells the model, hides nothing.
"""

from __future__ import annotations

import hashlib
import logging
import re
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from masis.schema.audit import CitationAudit, Claim, Sentence
from masis.steps.assertions import asserts, citations_by_sentence, claim_within, sentence_claim
from masis.steps.quotes import Located, located

log = logging.getLogger(__name__)

_LEAD = re.compile(r"\W*\d{0,3}\W*")
"""What opens a list item and says nothing."""


class Extracted(NamedTuple):
    """One assertion as the model gave it: words of the answer, and the same to be understood alone."""

    quote: str
    statement: str


class Extractions:
    """Extractions by answer, question, model and prompt, the latest ``most`` of them; safe to use from several threads.

    ``specs/draft-critique.md``, Performance Considerations: an answer that comes again is not asked about again.
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


def claims(found: Sequence[Extracted], answer: str, audit: CitationAudit) -> tuple[Claim, ...]:
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
