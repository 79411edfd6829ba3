"""The page of failure modes: from single notes to a codebook with counts."""
