"""The style in which an answer cites, so that a new marker looks like those that it has."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from masis.audit.citations.engine import audit_citations
from masis.audit.markers import SQUARE_BRACKETS, MarkerStyle, style_of_marker
from masis.schema.audit import CitationAudit
from masis.schema.case import Evidence

# The number at the end of an id: "7" of "chunk_7".
_DIGITS = re.compile(r"\d+$")


class CitingStyle(NamedTuple):
    """The style in which an answer cites, and its names for the chunks."""

    style: MarkerStyle
    names: dict[str, str]

    def write(self, evidence_ids: Iterable[str]) -> str:
        """Return one marker for these chunks in this style, or "" if there are none."""
        names = [self.names[evidence_id] for evidence_id in evidence_ids]
        return self.style.write(names) if names and self.style.write else ""


def citing_style(answer: str, audit: CitationAudit, evidence: Sequence[Evidence]) -> CitingStyle:
    """Return the style of most valid markers of the answer.

    The result is ``[id]`` if the answer has no valid marker, or if a marker written in its style
    wouldn't name the right chunk.
    """
    valid = [citation for citation in audit.citations if citation.status == "valid"]
    default_style = CitingStyle(SQUARE_BRACKETS, {chunk.id: chunk.id for chunk in evidence})
    if not valid:
        return default_style
    marker_styles = (
        style_of_marker(answer, citation.marker_start, citation.marker_end) for citation in valid
    )
    styles = Counter(style if style and style.write else SQUARE_BRACKETS for style in marker_styles)
    names = default_style.names
    # An answer that cites by number continues to do so: by position if any of its numbers is one,
    # else by the number in the id.
    if resolutions := {
        citation_.resolved_by for citation_ in valid if citation_.reference.strip().isdigit()
    }:
        endings = {
            chunk.id: None if "position" in resolutions else _DIGITS.search(chunk.id)
            for chunk in evidence
        }
        names = {
            name: ending.group() if ending else str(position)
            for position, (name, ending) in enumerate(endings.items(), 1)
        }
    style = CitingStyle(styles.most_common(1)[0][0], names)
    # Read each marker back: with ids such as "a1" and "b1", the number 1 would be ambiguous. The
    # word before it is long, because a raised number after a short one may be an exponent.
    for chunk in evidence:
        audit_of_marker = audit_citations(f"It is stated {style.write([chunk.id])}.", evidence)
        if [citation.evidence_id for citation in audit_of_marker.citations] != [chunk.id]:
            return default_style
    return style
