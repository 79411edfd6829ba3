"""The APIs of this package: a module for each, whose name is the ``kind`` in the settings.

A module declares its API with a function ``api`` that is decorated with
``masis.llm.provider_apis.provider``. Settings, known providers, Health and docs are derived from
the declaration, so a new module needs no change elsewhere. Every module is imported to read its
declaration, so an SDK is imported only when a provider is made.
"""
