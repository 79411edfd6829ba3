"""The source's two rules as written, with offsets (MASIS-CRITIC-LITERAL).

Every bracket is a citation, valid only if it holds an id to the letter; sentences end at every ``.``, ``!`` and ``?``;
a sentence without ``[`` is uncited unless it holds one of three phrases.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from masis.audit.citations.records import trusted
from masis.schema.audit import Citation, Sentence, SentenceStatus
from masis.schema.case import Evidence

_BRACKET = re.compile(r"\[(.*?)\]")
_STOP = re.compile(r"[.!?]")
_HEDGES = ("insufficient evidence", "not provided", "cannot provide")


def literal_audit(answer: str, evidence: Sequence[Evidence]) -> tuple[list[Citation], list[Sentence]]:
    """Citations and sentences by the literal rules."""
    valid = {chunk.id for chunk in evidence}
    pieces = list(_pieces(answer))
    starts = [start for start, _ in pieces]
    citations = [_citation(match, valid, starts) for match in _brackets(answer)]
    by_sentence: dict[int | None, list[str]] = {}
    for citation in citations:
        if citation.evidence_id is not None:
            by_sentence.setdefault(citation.sentence, []).append(citation.evidence_id)
    return citations, [
        _sentence(answer, start, end, tuple(dict.fromkeys(by_sentence.get(number, ()))))
        for number, (start, end) in enumerate(pieces)
    ]


def _brackets(answer: str) -> Iterator[re.Match[str]]:
    """As ``re.findall`` finds them, but in linear time: no search where no ``]`` follows on the line."""
    at = answer.find("[")
    while at >= 0:
        close = answer.find("]", at)
        if close < 0:
            return
        match = _BRACKET.match(answer, at)
        if match:
            yield match
            at = answer.find("[", match.end())
        else:  # the line ends before the bracket closes
            line_end = answer.find("\n", at)
            at = answer.find("[", line_end)


def _pieces(answer: str) -> Iterator[tuple[int, int]]:
    start = 0
    for end in [*(match.start() for match in _STOP.finditer(answer)), len(answer)]:
        piece = answer[start:end]
        if piece.strip():
            left = len(piece) - len(piece.lstrip())
            yield start + left, start + len(piece.rstrip())
        start = end + 1


def _citation(match: re.Match[str], valid: set[str], starts: Sequence[int]) -> Citation:
    name = match.group(1)
    known = name in valid
    sentence = bisect_right(starts, match.start()) - 1
    return trusted(
        Citation,
        start=match.start(1),
        end=match.end(1),
        text=name,
        reference=name,
        marker_start=match.start(),
        marker_end=match.end(),
        evidence_id=name if known else None,
        status="valid" if known else "invalid",
        resolved_by="exact" if known else None,
        sentence=sentence if sentence >= 0 else None,
    )


def _sentence(answer: str, start: int, end: int, ids: tuple[str, ...]) -> Sentence:
    text = answer[start:end]
    status: SentenceStatus
    if "[" in text:
        status, why = "cited", "holds a bracket"
    elif any(hedge in text.lower() for hedge in _HEDGES):
        status, why = "exempt", "says what is not known"
    else:
        status, why = "uncited", "holds no bracket"
    return trusted(Sentence, start=start, end=end, text=text, citation_ids=ids, status=status, why=why)
