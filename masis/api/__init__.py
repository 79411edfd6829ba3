"""Audits as functions, for programs and notebooks, without a store or a page."""
