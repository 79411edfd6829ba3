"""Failure modes: from what people and audits wrote to a codebook with counts."""
