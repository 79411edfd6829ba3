"""The HTTP server (extra ``web``). Programs in production send it cases and poll the results.

masis ingest                                  at http://127.0.0.1:8700/v1/cases
"""
