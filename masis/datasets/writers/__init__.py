"""Writers: cases and runs as JSON Lines, logs as CSV, screened abstracts as RIS."""

from masis.datasets.writers.decisions import write_log_csv
from masis.datasets.writers.lines import write_case, write_run

__all__ = ["write_case", "write_log_csv", "write_run"]
