"""Tokens, stems, word weights, synonyms and number words: the basis of all text comparisons."""
