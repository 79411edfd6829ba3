"""Audits as values, for programs and notebooks: a case goes in, a run comes out; no
store, no page.
"""
