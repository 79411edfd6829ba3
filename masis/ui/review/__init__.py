"""One case on the desk: the marked answer, evidence, issues, scores, decisions, comparison, report."""
