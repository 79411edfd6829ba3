"""From measurements to a verdict: features, the fitted classifier and the calibration of contradictions."""
