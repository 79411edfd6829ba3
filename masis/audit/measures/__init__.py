"""What a run is measured by: scores, metrics and their catalogue."""
