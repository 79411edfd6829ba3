"""The audit itself, without knowing who judges. The package can be called: ``masis.audit(cases)``
audits many cases.

    masis.audit(cases, settings=None, *, concurrency=None, progress=True, max_cost=None, map=None) -> pd.DataFrame
    found = masis.audit(frame, map={"answer": "response"})

``found`` is a data frame with a row for each case, under the labels of the frame that was given.
Its columns are those of ``masis.runs_to_pandas`` and ``error``; the arguments are those of
``masis.audit_many`` (``masis.api.batch.audit``).
"""
