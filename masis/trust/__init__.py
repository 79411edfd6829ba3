"""Measures how reliable the audit is, by comparing it with people and people with each other.

``agreement`` measures agreement, ``machine`` compares the audit with people and estimates its
misses, ``score`` fits the probability of fault, and ``guarantee`` tests a threshold. ``paired``
compares systems that answered the same questions. All functions are pure.
``masis/services/trust/service.py`` reads the decisions and checks permissions. docs/trust.md
explains the figures, and ``benchmarks/trust_simulation.py`` shows that guarantees and intervals
hold.

scipy and scikit-learn are imported inside the functions that use them, because importing them takes
longer than computing most of these figures.
"""
