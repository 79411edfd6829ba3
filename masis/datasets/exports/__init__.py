"""Data sets out of what people decided: rows by format, split by question, written as they are read, with a manifest.

``formats`` makes rows of cases, ``splits`` says on which side a question stands, ``export`` writes rows as JSON Lines,
CSV or Parquet with a manifest. ``versions`` freezes a data set under a name, makes it again and compares two.
"""

from masis.datasets.exports.export import (
    DECIDED,
    DECISIONS,
    ENCODINGS,
    Exported,
    Selection,
    Watcher,
    write_export,
    write_file,
)
from masis.datasets.exports.formats import FORMATS, Format
from masis.datasets.exports.splits import SPLITS, Shares
from masis.datasets.exports.versions import Change, changes, freeze, rebuild

__all__ = [
    "DECIDED",
    "DECISIONS",
    "ENCODINGS",
    "FORMATS",
    "SPLITS",
    "Change",
    "Exported",
    "Format",
    "Selection",
    "Shares",
    "Watcher",
    "changes",
    "freeze",
    "rebuild",
    "write_export",
    "write_file",
]
