"""The HTTP door (extra ``web``): programs in production send cases, and poll what became of them.

masis ingest                                  at http://127.0.0.1:8700/v1/cases
"""
