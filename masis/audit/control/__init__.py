"""Controls the steps of a run: its limits, its routing and its reports."""
