"""Ids of stored evidence: an id of a chunk holds within its case only, so ``case/chunk`` names one
in the whole store.

``/`` and ``%`` inside an id are written ``%2F`` and ``%25`` there. The id of a chunk alone will do
where only one case has such a chunk. What names nothing, or more than one, is reported with the ids
that may have been meant.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import cache, partial
from typing import NamedTuple

from masis.errors import InputError, UnknownRecord
from masis.integrations.mcp.quoting import quote_id
from masis.integrations.mcp.reports import FoundEvidence, address
from masis.schema.case import Case, Evidence
from masis.services import Workbench

_NEAR = 3


class ToolSource(NamedTuple):
    """A chunk as a tool uses it. ``chunk.id`` is the id within this call; ``source_id`` what the
    caller wrote, and ``address`` its id in the whole store, both None for evidence given in full.
    """

    chunk: Evidence
    source_id: str | None = None
    address: str | None = None


Place = tuple[str, str]
"""A case and a chunk of it."""


def gather_sources(
    workbench: Workbench, ids: Sequence[str], inline: Sequence[Evidence] = ()
) -> tuple[ToolSource, ...]:
    """Return the chunks given in full, then those the ids name, each once, each with an id of its
    own.

    A chunk keeps its own id where no other here has the same, so that ``[chunk_1]`` in an answer
    still points at it; else it goes by its address. Raises InputError naming every id that names
    nothing or more than one chunk.
    """
    case = cache(partial(_case_or_none, workbench))

    def chunk(case_id: str, evidence_id: str) -> Evidence | None:
        held = case(case_id)
        return (
            next((chunk for chunk in held.evidence if chunk.id == evidence_id), None)
            if held
            else None
        )

    places = {source_id: _split_source_id(source_id) for source_id in ids}
    # An id that is no address may be a chunk's id alone: all cases are looked through once for
    # these.
    alone = [source_id for source_id, place in places.items() if not chunk(*place)]
    holders = workbench.store.evidence.cases_with(alone, limit=_NEAR) if alone else {}
    found: dict[Place, ToolSource] = {}
    wrong: list[str] = []
    for source_id, place in places.items():
        held_by = holders.get(source_id)
        if held_by and held_by.total == 1:
            place = (held_by.ids[0], source_id)
        if held_by and held_by.total > 1:
            addresses = ", ".join(quote_id(address(case_id, source_id)) for case_id in held_by.ids)
            total = f"{held_by.total:,}"
            wrong.append(
                f"{quote_id(source_id)} is evidence of {total} cases: name the case too, as in"
                f" {addresses}"
            )
        elif there := chunk(*place):
            found.setdefault(place, ToolSource(there, source_id, address(*place)))
        else:
            wrong.append(_why_nothing(workbench, source_id, case(place[0])))
    if wrong:
        raise InputError(
            "; ".join(wrong),
            hint="search_evidence and get_case give ids of stored evidence.",
            field="sourceIds",
        )
    sources = (*map(ToolSource, inline), *found.values())
    shared = Counter(source.chunk.id for source in sources)
    return tuple(
        (
            source._replace(chunk=source.chunk.model_copy(update={"id": source.address}))
            if source.address and shared[source.chunk.id] > 1
            else source
        )
        for source in sources
    )


def _case_or_none(workbench: Workbench, case_id: str) -> Case | None:
    try:
        return workbench.store.cases.get(case_id)
    except UnknownRecord:
        return None


def _split_source_id(source_id: str) -> Place:
    """Return the case and the chunk of an id as ``address`` writes it; the chunk is empty where no
    ``/`` is in it.
    """
    case_id, _, evidence_id = source_id.replace("%2f", "%2F").partition("/")
    return case_id.replace("%2F", "/").replace("%25", "%"), evidence_id.replace("%2F", "/").replace(
        "%25", "%"
    )


def _why_nothing(workbench: Workbench, source_id: str, case: Case | None) -> str:
    """Return why an id names no chunk, and which may have been meant."""
    case_id, evidence_id = _split_source_id(source_id)
    if case is None:
        if evidence_id:
            return f"there is no case {quote_id(case_id)}{near_cases(workbench, case_id)}"
        return f"there is no stored evidence {quote_id(source_id)}"
    if not evidence_id:
        return (
            f"{quote_id(case_id)} is a case, not evidence of one: a chunk of it is"
            f" {quote_id(address(case_id, 'ID'))}"
        )
    ids = [chunk.id for chunk in case.evidence]
    near = [address(case_id, each) for each in _similar_ids(evidence_id, ids) or ids[:_NEAR]]
    return f"case {quote_id(case_id)} has no evidence {quote_id(evidence_id)}{_among(near)}"


def near_cases(workbench: Workbench, case_id: str) -> str:
    """Return the ids of cases that a wrong one may have meant, in brackets; empty where there is
    none.
    """
    return _among(_similar_ids(case_id, workbench.store.evidence.newest_ids("cases")))


def near_runs(workbench: Workbench, run_id: str) -> str:
    """Return the ids of runs that a wrong one may have meant, in brackets; empty where there is
    none.
    """
    ids = workbench.store.evidence.newest_ids("runs")
    beginning = [each for each in ids if each.startswith(run_id)] if len(run_id) >= 4 else []
    return _among(beginning[:_NEAR] or _similar_ids(run_id, ids))


def _similar_ids(text: str, ids: Sequence[str]) -> list[str]:
    return difflib.get_close_matches(
        text[:100], [each for each in ids if len(each) <= 200], n=_NEAR, cutoff=0.5
    )


def _among(ids: Sequence[str]) -> str:
    return f" (near: {', '.join(map(quote_id, ids))})" if ids else ""


# The chunks of a case that say most about some words, and the part of each where they stand.

MOST_CHUNKS = 5
EXCERPT = 300
_WORDS = 32
_WORD = re.compile(r"\w+")


def best_chunks(case: Case, text: str) -> list[FoundEvidence]:
    """Up to five chunks of a case with the most of the words, in the order of how many."""
    words = list(dict.fromkeys(_without_accents(found.group()) for found in _WORD.finditer(text)))[
        :_WORDS
    ]
    texts = ((chunk, _without_accents(chunk.text)) for chunk in case.evidence)
    scored = [(sum(word in plain for word in words), chunk, plain) for chunk, plain in texts]
    best = sorted((each for each in scored if each[0]), key=lambda each: -each[0])[:MOST_CHUNKS]
    return [
        FoundEvidence(
            source_id=address(case.id, chunk.id),
            case_id=case.id,
            evidence_id=chunk.id,
            source=chunk.source,
            excerpt=_excerpt(chunk.text, plain, words),
            characters=len(chunk.text),
        )
        for _, chunk, plain in best
    ]


def _excerpt(text: str, plain: str, words: list[str]) -> str:
    """The stretch around the first of the words."""
    # positions differ where a character has no plain form of one character
    if len(plain) != len(text):
        return text[:EXCERPT]
    first = min((at for word in words if (at := plain.find(word)) >= 0), default=0)
    start = max(0, first - EXCERPT // 4)
    cut = text[start : start + EXCERPT]
    return f"{'…' if start else ''}{cut}{'…' if start + EXCERPT < len(text) else ''}"


def _without_accents(text: str) -> str:
    """Lower case without accents, as the full text index compares words."""
    decomposed = unicodedata.normalize("NFD", text.lower())
    return "".join(char for char in decomposed if not unicodedata.combining(char))
