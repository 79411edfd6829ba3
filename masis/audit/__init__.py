"""The audit itself, independent of who judges.

The name ``masis.audit`` is also a function, which audits many cases: ``masis.audit(cases)``. Import
the modules of this package by ``from masis.audit import loop``.
"""
