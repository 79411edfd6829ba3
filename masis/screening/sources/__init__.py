"""Where abstracts come from: a list in memory, a corpus, PubMed; records, duplicates and the
retrieval protocol.
"""
