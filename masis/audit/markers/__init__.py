"""Citation markers: where an answer points at evidence, in which style, and what each marker names.

The one place that knows how a marker looks. See ``docs/audits.md``.
"""

from masis.audit.markers.finding import (
    Marker,
    find_markers,
    holds_only_markers,
    marker_spans,
    opens_with_marker,
    puts_markers_first,
    trailing_markers_end,
    without_markers,
)
from masis.audit.markers.references import CITATION_NEEDED, Reference
from masis.audit.markers.resolution import NOTHING, EvidenceIndex, Resolution, index_of
from masis.audit.markers.styles import MarkerStyle

__all__ = [
    "CITATION_NEEDED",
    "NOTHING",
    "EvidenceIndex",
    "Marker",
    "MarkerStyle",
    "Reference",
    "Resolution",
    "find_markers",
    "holds_only_markers",
    "index_of",
    "marker_spans",
    "opens_with_marker",
    "puts_markers_first",
    "trailing_markers_end",
    "without_markers",
]
