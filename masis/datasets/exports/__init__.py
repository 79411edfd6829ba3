"""Data sets out of what people decided: rows by format, split by question, written as they are
read, with a manifest.

``formats`` makes rows of cases, ``splits`` says on which side a question stands, ``export`` writes
rows as JSON Lines, CSV or Parquet with a manifest. ``versions`` freezes a data set under a name,
makes it again and compares two.
"""
