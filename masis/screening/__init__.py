"""The evidence critic decides whether the retrieved evidence is good enough to conclude from.

The rules are those of docs/CONFORMANCE.md whose ids begin with AESOP. The flow of the data:

    question -> queries -> retriever -> abstracts -> grader -> grades
      -> ruling
    (the ruling ends the screening or asks for more abstracts)

``rubric`` holds the science and the policy, ``recommendation`` and ``ruling`` the written rules,
``designs`` and ``sample_size`` read an abstract without a model, ``rounds`` is the loop. Nothing
here uses a store or a page.
"""
