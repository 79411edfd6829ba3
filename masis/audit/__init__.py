"""The audit itself, independent of who judges. Calling the package audits many cases.

    masis.audit(cases, settings=None, *, concurrency=None, progress=True, max_cost=None,
                map=None) -> pandas.DataFrame
    table = masis.audit(frame, map={"answer": "response"})

``table`` is a pandas DataFrame with one row per case, with the labels of the given frame. Its
columns are those of ``masis.runs_to_pandas`` and ``error``; the arguments are those of
``masis.audit_many`` (``masis.api.batch.audit``).
"""
