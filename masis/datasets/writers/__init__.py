"""Writers: cases and runs as JSON Lines, logs as CSV, screened abstracts as RIS."""
