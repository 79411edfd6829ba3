"""The evidence of a case as an index, and how a claim aligns with it."""
