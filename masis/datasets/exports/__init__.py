"""Data sets out of what people decided: rows by format, split by question, written as they are read, with a manifest.

``formats`` makes rows of cases, ``splits`` says on which side a question stands, ``sinks`` write rows as JSON Lines,
CSV or Parquet, ``export`` puts them together and ``manifest`` says what was written.
"""

from masis.datasets.exports.export import DECIDED, Exported, Selection, write_export, write_file
from masis.datasets.exports.formats import FORMATS, Format
from masis.datasets.exports.sinks import ENCODINGS
from masis.datasets.exports.splits import SPLITS, Shares

__all__ = [
    "DECIDED",
    "ENCODINGS",
    "FORMATS",
    "SPLITS",
    "Exported",
    "Format",
    "Selection",
    "Shares",
    "write_export",
    "write_file",
]
