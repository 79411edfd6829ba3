"""Data sets made from people's decisions: rows by format, split by question, with a manifest.

``formats`` turns cases into rows, ``splits`` assigns questions to the sides of a split, and
``export`` writes rows as JSON Lines, CSV or Parquet with a manifest. ``versions`` freezes a data
set under a name, rebuilds it and compares two of them.
"""
