"""Writers: cases, runs and decisions as JSON Lines, logs as CSV, screened abstracts as RIS."""

from masis.datasets.writers.decisions import DECIDED, write_decided, write_log_csv
from masis.datasets.writers.lines import write_case, write_run

__all__ = ["DECIDED", "write_case", "write_decided", "write_log_csv", "write_run"]
