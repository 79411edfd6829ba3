"""The sentence encoder, which measures similarity of meaning, and its files."""
