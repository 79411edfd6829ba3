"""The roles that use a language model: providers, prompts, and one file for each role.

    RolePrompt (fenced, versioned) -> Model.ask -> Provider (one try over the wire)
      -> reply -> typed record

Only ``client/model.py`` retries, waits, falls back to other formats and counts. A provider makes
one try, and only its file imports the vendor's SDK.
"""
