"""Cases and runs: stored, queued, searched, counted."""
