"""Likeness of meaning: the sentence encoder and its files."""
