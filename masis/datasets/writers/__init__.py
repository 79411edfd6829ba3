"""Writers: records as JSON Lines."""

from masis.datasets.writers.json_lines import write_case, write_run

__all__ = ["write_case", "write_run"]
