"""The page of one case: the marked answer, evidence, issues, scores, decisions,
comparison, report.
"""
