"""Writing markers as an answer writes them: the shape of its brackets, and how it names each chunk."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from masis.audit.citations.engine import audit_citations
from masis.schema.audit import Citation, CitationAudit
from masis.schema.case import Evidence

Shape = Literal["square", "lenticular", "round", "footnote"]

_DIGITS = re.compile(r"\d+$")


class MarkerStyle(NamedTuple):
    """How an answer cites: the shape of its markers, and how it names each chunk."""

    shape: Shape
    names: dict[str, str]

    def write(self, evidence_ids: Iterable[str]) -> str:
        """Return one marker for these chunks, in this style; empty for none."""
        names = [self.names[evidence_id] for evidence_id in evidence_ids]
        if not names:
            return ""
        if self.shape == "lenticular":
            return "".join(f"【{name}†source】" for name in names)
        if self.shape == "footnote":
            return "".join(f"[^{name}]" for name in names)
        if self.shape == "round":
            return f"(Source {names[0]})" if len(names) == 1 else f"(Sources {', '.join(names)})"
        return f"[{', '.join(names)}]"


def marker_style(answer: str, audit: CitationAudit, evidence: Sequence[Evidence]) -> MarkerStyle:
    """Return the style most of the answer's valid markers have; ``[id]`` where there is none or it would not be
    understood.
    """
    valid = [citation for citation in audit.citations if citation.status == "valid"]
    shapes = Counter(_shape(answer, citation) for citation in valid)
    numbered = Counter(c.resolved_by for c in valid if c.reference.strip().isdigit())
    by_position = numbered.get("position", 0) > 0
    plain = MarkerStyle("square", {chunk.id: chunk.id for chunk in evidence})
    if not valid:
        return plain
    names = {
        chunk.id: _number(chunk.id, place, by_position) if numbered else chunk.id
        for place, chunk in enumerate(evidence, 1)
    }
    style = MarkerStyle(shapes.most_common(1)[0][0], names)
    return style if _understood(style, evidence) else plain


def _shape(answer: str, citation: Citation) -> Shape:
    marker = answer[citation.marker_start : citation.marker_end]
    if marker.startswith("【"):
        return "lenticular"
    if marker.startswith("[^"):
        return "footnote"
    return "round" if marker.startswith("(") else "square"


def _number(evidence_id: str, place: int, by_position: bool) -> str:
    ending = _DIGITS.search(evidence_id)
    return ending.group() if ending and not by_position else str(place)


def _understood(style: MarkerStyle, evidence: Sequence[Evidence]) -> bool:
    for chunk in evidence:
        read = audit_citations(f"It is so {style.write([chunk.id])}.", evidence)
        if [citation.evidence_id for citation in read.citations] != [chunk.id]:
            return False
    return True
