"""The evidence critic decides whether the retrieved evidence is good enough to conclude from.

The rules are those of docs/CONFORMANCE.md whose ids begin with AESOP. The flow of the data:

    question -> queries -> retriever -> abstracts -> grader -> grades
      -> ruling
    (the ruling ends the screening or asks for more abstracts)

``rubric`` holds the constants with their sources, ``recommendation`` and ``ruling`` hold the
written rules, ``designs`` and ``sample_size`` read an abstract without a model, and ``rounds`` is
the loop. This package doesn't use a store or a page.
"""
