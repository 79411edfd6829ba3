"""Ids of stored evidence: an id of a chunk holds within its case only, so ``case/chunk`` names one in the whole store.

``/`` and ``%`` inside an id are written ``%2F`` and ``%25`` there. The id of a chunk alone will do where only one case
has such a chunk. What names nothing, or more than one, is reported with the ids that may have been meant.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from masis.errors import InputError, UnknownRecord
from masis.integrations.mcp.quoting import named
from masis.integrations.mcp.reports import FoundEvidence, address
from masis.schema.case import Case, Evidence
from masis.services import Workbench

_NEAR = 3


class Source(NamedTuple):
    """A chunk as a tool uses it. ``chunk.id`` is the id within this call; ``given`` what the caller wrote, None for
    evidence given in full; ``case_id`` and ``evidence_id`` where it is stored.
    """

    chunk: Evidence
    source_id: str | None = None
    case_id: str | None = None
    evidence_id: str | None = None


def gathered(workbench: Workbench, ids: Sequence[str], inline: Sequence[Evidence] = ()) -> tuple[Source, ...]:
    """Return the chunks given in full, then those the ids name, each once, each with an id of its own.

    A chunk keeps its own id where no other here has the same, so that ``[chunk_1]`` in an answer still points at it;
    else it goes by its address. Raises InputError naming every id that names nothing or more than one chunk.
    """
    finder = _Finder(workbench, ids)
    found: dict[tuple[str, str], Source] = {}
    wrong: list[str] = []
    for source_id in dict.fromkeys(ids):
        places, total = finder.places(source_id)
        if total == 1 and (chunk := finder.chunk(*places[0])):
            found.setdefault(places[0], Source(chunk, source_id, *places[0]))
        else:
            wrong.append(finder.why_not(source_id, places, total))
    if wrong:
        raise InputError(
            "; ".join(wrong), cure="search_evidence and get_case give ids of stored evidence.", field="sourceIds"
        )
    shared = Counter([chunk.id for chunk in inline] + [evidence_id for _, evidence_id in found])
    stored = [
        source._replace(chunk=source.chunk.model_copy(update={"id": address(*place)}))
        if shared[place[1]] > 1
        else source
        for place, source in found.items()
    ]
    return (*map(Source, inline), *stored)


def near_case_ids(workbench: Workbench, case_id: str) -> list[str]:
    """Ids of cases that a wrong one may have meant."""
    return _near(case_id, workbench.store.evidence.newest_ids("cases"))


def near_run_ids(workbench: Workbench, run_id: str) -> list[str]:
    """Ids of runs that a wrong one may have meant."""
    ids = workbench.store.evidence.newest_ids("runs")
    beginning = [each for each in ids if each.startswith(run_id)] if len(run_id) >= 4 else []
    return beginning[:_NEAR] or _near(run_id, ids)


def among(ids: Sequence[str]) -> str:
    """``near: 'a', 'b'``; empty where there is none."""
    return f" (near: {', '.join(map(named, ids))})" if ids else ""


def _near(text: str, ids: Sequence[str]) -> list[str]:
    return difflib.get_close_matches(text[:100], [each for each in ids if len(each) <= 200], n=_NEAR, cutoff=0.5)


def _read(written: str) -> str:
    return written.replace("%2F", "/").replace("%2f", "/").replace("%25", "%")


Place = tuple[str, str]
"""A case and a chunk of it."""


class _Finder:
    """Looks ids up, reading each case once, and all cases once for the ids that name none."""

    def __init__(self, workbench: Workbench, ids: Sequence[str]) -> None:
        self._workbench = workbench
        self._cases: dict[str, Case | None] = {}
        alone = [source_id for source_id in ids if not self.chunk(*_split(source_id))]
        self._alone = workbench.store.evidence.cases_with(alone, limit=_NEAR) if alone else {}

    def places(self, source_id: str) -> tuple[list[Place], int]:
        """Return the first places that an id names, as an address or else as a chunk's id alone, and their number."""
        if source_id not in self._alone:
            return [_split(source_id)], 1
        found = self._alone[source_id]
        return [(case_id, source_id) for case_id in found.ids], found.total

    def why_not(self, source_id: str, places: Sequence[Place], total: int) -> str:
        """Return why an id names no one chunk, and which may have been meant."""
        if total:
            addresses = ", ".join(named(address(*place)) for place in places)
            return f"{named(source_id)} is evidence of {total:,} cases: name the case too, as in {addresses}"
        case_id, evidence_id = _split(source_id)
        if case := self._case(case_id):
            ids = [chunk.id for chunk in case.evidence]
            if evidence_id:
                near = [address(case_id, each) for each in _near(evidence_id, ids) or ids[:_NEAR]]
                return f"case {named(case_id)} has no evidence {named(evidence_id)}{among(near)}"
            return f"{named(case_id)} is a case, not evidence of one: a chunk of it is {named(address(case_id, 'ID'))}"
        if evidence_id:
            return f"there is no case {named(case_id)}{among(near_case_ids(self._workbench, case_id))}"
        return f"there is no stored evidence {named(source_id)}"

    def chunk(self, case_id: str, evidence_id: str) -> Evidence | None:
        """Return the chunk at a place, where there is one."""
        case = self._case(case_id)
        return next((chunk for chunk in case.evidence if chunk.id == evidence_id), None) if case else None

    def _case(self, case_id: str) -> Case | None:
        if case_id not in self._cases:
            try:
                self._cases[case_id] = self._workbench.store.cases.get(case_id)
            except UnknownRecord:
                self._cases[case_id] = None
        return self._cases[case_id]


def _split(source_id: str) -> Place:
    """Return the case and the chunk of an id as ``address`` writes it; the chunk is empty where no ``/`` is in it."""
    case_id, _, evidence_id = source_id.partition("/")
    return _read(case_id), _read(evidence_id)


# The chunks of a case that say most about some words, and the part of each where they stand.

MOST_CHUNKS = 5
EXCERPT = 300
_WORDS = 32
_WORD = re.compile(r"\w+")


def best_chunks(case: Case, text: str) -> list[FoundEvidence]:
    """Up to five chunks of a case with the most of the words, in the order of how many."""
    words = list(dict.fromkeys(_plain(found.group()) for found in _WORD.finditer(text)))[:_WORDS]
    plain = [(chunk, _plain(chunk.text)) for chunk in case.evidence]
    scored = [(sum(word in said for word in words), chunk) for chunk, said in plain]
    best = sorted((each for each in scored if each[0]), key=lambda each: -each[0])[:MOST_CHUNKS]
    return [
        FoundEvidence(
            source_id=address(case.id, chunk.id),
            case_id=case.id,
            evidence_id=chunk.id,
            source=chunk.source,
            excerpt=_excerpt(chunk, words),
            characters=len(chunk.text),
        )
        for _, chunk in best
    ]


def _excerpt(chunk: Evidence, words: list[str]) -> str:
    """The stretch around the first of the words."""
    plain = _plain(chunk.text)
    if len(plain) != len(chunk.text):  # positions differ where a character has no plain form of one character
        return chunk.text[:EXCERPT]
    first = min((at for word in words if (at := plain.find(word)) >= 0), default=0)
    start = max(0, first - EXCERPT // 4)
    cut = chunk.text[start : start + EXCERPT]
    return f"{'…' if start else ''}{cut}{'…' if start + EXCERPT < len(chunk.text) else ''}"


def _plain(text: str) -> str:
    """Lower case without accents, as the full text index compares words."""
    decomposed = unicodedata.normalize("NFD", text.lower())
    return "".join(char for char in decomposed if not unicodedata.combining(char))
