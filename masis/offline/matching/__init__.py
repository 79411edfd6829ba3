"""The evidence of a case as an index, and how the words of a claim overlap with it."""
