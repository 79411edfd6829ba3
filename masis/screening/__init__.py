"""The evidence critic: is what was retrieved good enough to conclude from, or must more be
retrieved?

The rules are those of docs/CONFORMANCE.md whose ids begin with AESOP. The flow of the data:

    question -> queries -> retriever -> abstracts -> grader -> grades
      -> ruling: sufficient, or retrieve more

``rubric`` holds the science and the policy, ``recommendation`` and ``ruling`` the written rules,
``designs`` and ``sample_size`` read an abstract without a model, ``rounds`` is the loop. Nothing
here uses a store or a page.
"""
