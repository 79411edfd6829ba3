"""Resolves ids of stored evidence.

The id of a chunk is unique within its case only, so ``case/chunk`` identifies one in the whole
store. ``/`` and ``%`` inside an id are written ``%2F`` and ``%25`` there. The id of a chunk alone
is enough if only one case has such a chunk. An id that is unknown or ambiguous is reported together
with similar ids.
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
    """A chunk of evidence that a tool uses.

    ``chunk.id`` is the id within this call, ``source_id`` the id that the caller gave, and
    ``address`` its id in the whole store. The last two are None for evidence given in full.
    """

    chunk: Evidence
    source_id: str | None = None
    address: str | None = None


Place = tuple[str, str]
"""The ids of a case and of one of its chunks."""


def gather_sources(
    workbench: Workbench, ids: Sequence[str], inline: Sequence[Evidence] = ()
) -> tuple[ToolSource, ...]:
    """Return the chunks given in full, then those that the ids identify, without duplicates and
    with unique ids.

    A chunk keeps its own id unless another chunk here has the same one, so that ``[chunk_1]`` in an
    answer still points at it. Otherwise its address becomes its id.

    Raises:
        InputError: Ids are unknown or match more than one chunk. The error names them all.

    """
    case = cache(partial(_case_or_none, workbench))

    def chunk(case_id: str, evidence_id: str) -> Evidence | None:
        stored_case = case(case_id)
        return (
            next((chunk for chunk in stored_case.evidence if chunk.id == evidence_id), None)
            if stored_case
            else None
        )

    places = {source_id: _split_source_id(source_id) for source_id in ids}
    # An id that isn't an address may be the id of a chunk alone. One query searches all cases for
    # them.
    alone = [source_id for source_id, place in places.items() if not chunk(*place)]
    holders = workbench.store.evidence.cases_with(alone, limit=_NEAR) if alone else {}
    tool_sources: dict[Place, ToolSource] = {}
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
            tool_sources.setdefault(place, ToolSource(there, source_id, address(*place)))
        else:
            wrong.append(_explain_missing(workbench, source_id, case(place[0])))
    if wrong:
        raise InputError(
            "; ".join(wrong),
            hint="search_evidence and get_case give ids of stored evidence.",
            field="sourceIds",
        )
    sources = (*map(ToolSource, inline), *tool_sources.values())
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
    """Split an id as ``address`` writes it into case and chunk. The chunk is empty if the id has no
    ``/``.
    """
    case_id, _, evidence_id = source_id.replace("%2f", "%2F").partition("/")
    return case_id.replace("%2F", "/").replace("%25", "%"), evidence_id.replace("%2F", "/").replace(
        "%25", "%"
    )


def _explain_missing(workbench: Workbench, source_id: str, case: Case | None) -> str:
    """Explain why an id doesn't match a chunk, and suggest similar ids."""
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
    similar_addresses = [
        address(case_id, similar) for similar in _similar_ids(evidence_id, ids) or ids[:_NEAR]
    ]
    similar = _list_similar(similar_addresses)
    return f"case {quote_id(case_id)} has no evidence {quote_id(evidence_id)}{similar}"


def near_cases(workbench: Workbench, case_id: str) -> str:
    """Return ids of cases similar to a wrong one, in brackets. Empty if there are none."""
    return _list_similar(_similar_ids(case_id, workbench.store.evidence.newest_ids("cases")))


def near_runs(workbench: Workbench, run_id: str) -> str:
    """Return ids of runs that begin like a wrong one or are similar, in brackets. Empty if there
    are none.
    """
    ids = workbench.store.evidence.newest_ids("runs")
    beginning = (
        [stored_id for stored_id in ids if stored_id.startswith(run_id)] if len(run_id) >= 4 else []
    )
    return _list_similar(beginning[:_NEAR] or _similar_ids(run_id, ids))


def _similar_ids(text: str, ids: Sequence[str]) -> list[str]:
    return difflib.get_close_matches(
        text[:100], [stored_id for stored_id in ids if len(stored_id) <= 200], n=_NEAR, cutoff=0.5
    )


def _list_similar(ids: Sequence[str]) -> str:
    return f" (near: {', '.join(map(quote_id, ids))})" if ids else ""


# Search results: the chunks of a case that contain most of the words, with an excerpt.

MOST_CHUNKS = 5
EXCERPT = 300
_WORDS = 32
_WORD = re.compile(r"\w+")


def best_chunks(case: Case, text: str) -> list[FoundEvidence]:
    """Return up to five chunks of a case that contain the most of the words, best first."""
    words = list(dict.fromkeys(_without_accents(match.group()) for match in _WORD.finditer(text)))[
        :_WORDS
    ]
    texts = ((chunk, _without_accents(chunk.text)) for chunk in case.evidence)
    scored = [(sum(word in plain for word in words), chunk, plain) for chunk, plain in texts]
    best = sorted((match for match in scored if match[0]), key=lambda match: -match[0])[
        :MOST_CHUNKS
    ]
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
    """Return the part of the text around the first of the words."""
    # Removing accents can change the number of characters, and then positions in ``plain`` aren't
    # positions in ``text``.
    if len(plain) != len(text):
        return text[:EXCERPT]
    first = min((position for word in words if (position := plain.find(word)) >= 0), default=0)
    start = max(0, first - EXCERPT // 4)
    cut = text[start : start + EXCERPT]
    return f"{'…' if start else ''}{cut}{'…' if start + EXCERPT < len(text) else ''}"


def _without_accents(text: str) -> str:
    """Return the text in lower case without accents, which is how the full-text index compares
    words.
    """
    decomposed = unicodedata.normalize("NFD", text.lower())
    return "".join(char for char in decomposed if not unicodedata.combining(char))
