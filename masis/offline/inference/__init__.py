"""From features to a verdict: the fitted support classifier and the calibration of contradictions."""
