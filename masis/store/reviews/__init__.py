"""Stores people's work: the decision log, case states, drafts, leases and dataset versions."""
