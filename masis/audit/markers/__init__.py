"""Citation markers: their positions in an answer, their style, and the evidence that they cite.

Only this package knows what a marker looks like. See ``docs/audits.md``.
"""

from masis.audit.markers.damage import (
    count_empty_markers,
    count_unclosed_markers,
    half_bracketed_ids,
)
from masis.audit.markers.finding import (
    Marker,
    bracketed_numbers,
    bracketed_words,
    brackets_with_stops,
    find_markers,
    holds_only_markers,
    leading_marker,
    marker_end_pattern,
    marker_spans,
    opens_with_marker,
    puts_markers_first,
    style_of_marker,
    trailing_markers_end,
    without_brackets,
    without_last_brackets,
    without_markers,
    without_spans,
    words_of_marker,
)
from masis.audit.markers.references import CITATION_NEEDED, Reference
from masis.audit.markers.resolution import (
    NOTHING,
    EvidenceIds,
    Resolution,
    evidence_index,
    index_of,
)
from masis.audit.markers.styles import SQUARE_BRACKETS, MarkerStyle

__all__ = [
    "CITATION_NEEDED",
    "NOTHING",
    "SQUARE_BRACKETS",
    "EvidenceIds",
    "Marker",
    "MarkerStyle",
    "Reference",
    "Resolution",
    "bracketed_numbers",
    "bracketed_words",
    "brackets_with_stops",
    "count_empty_markers",
    "count_unclosed_markers",
    "evidence_index",
    "find_markers",
    "half_bracketed_ids",
    "holds_only_markers",
    "index_of",
    "leading_marker",
    "marker_end_pattern",
    "marker_spans",
    "opens_with_marker",
    "puts_markers_first",
    "style_of_marker",
    "trailing_markers_end",
    "without_brackets",
    "without_last_brackets",
    "without_markers",
    "without_spans",
    "words_of_marker",
]
