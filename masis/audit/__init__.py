"""The audit, independent of the judges (offline rules, models, plug-ins).

The name ``masis.audit`` is also a function, which audits many cases: ``masis.audit(cases)``. Import
the modules of this package by ``from masis.audit import loop``.
"""
