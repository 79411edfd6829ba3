"""The sources of abstracts (a list in memory, a corpus, PubMed), their records and duplicates."""
