"""Reviewing as a team: taking cases, the work on one case, adjudication, policies, the rubric,
progress.
"""
