"""The roles with a language model: providers, prompts, and one file a role.

    Prompt (fenced, versioned) -> Model.ask -> Provider (one try over the wire) -> reply, read into a typed record

``model.py`` is the only place that retries, waits, falls back and counts; a provider makes one try.
A vendor's SDK appears in its provider's file alone.
"""
