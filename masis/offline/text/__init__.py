"""Tokens, stems, word weights, synonyms: what every comparison of two texts starts from."""
