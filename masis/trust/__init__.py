"""How far the automatic audit may be relied on: people against the machine, and people against each
other.

``agreement`` measures, ``machine`` compares the audit with people and estimates what it misses,
``score`` fits the probability of fault, ``guarantee`` tests a threshold. All are pure:
``masis/services/trust/service.py`` reads the decisions and checks who may do what. docs/trust.md
explains the figures; ``benchmarks/trust_simulation.py`` shows that guarantees and intervals are
kept.

scipy and scikit-learn are imported where they are used: importing them takes longer than most of
these figures.
"""
