"""What one sentence says: its facts, units, polarity, modality and predicates."""
