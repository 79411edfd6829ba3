"""Hide values that may be keys, so that a key in the wrong place is never repeated."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit, urlunsplit

LONGEST = 60
HIDDEN = "(not shown: it may be a key)"

# Prefixes of well-known keys and tokens at the start of a word, such as ``sk-...`` or ``ghp_...``.
_BEGINS_LIKE_A_KEY = re.compile(
    r"(?:^|[\s'\"=:,/{\[(])"
    r"(?:(?:sk|pk|rk|hf|ghp|gho|github_pat|glpat|xox[a-z])[-_]|AKIA|AIza|eyJ|Bearer )"
    r"[-_A-Za-z0-9.]{10,}"
)
# A run of at least 28 characters of base64 or hexadecimal; hyphens, dots and slashes end it.
_LONG_AND_MIXED = re.compile(r"[A-Za-z0-9_+=]{28,}")


def may_be_a_key(text: str) -> bool:
    """Return whether a text looks like a key: it has a known prefix, or is long and mixes letters
    and digits.
    """
    if _BEGINS_LIKE_A_KEY.search(text):
        return True
    return any(
        re.search(r"\d", run) and re.search("[A-Za-z]", run)
        for run in _LONG_AND_MIXED.findall(text)
    )


def safe_value(value: Any) -> str:
    """Return a value for an error message: on one line, shortened, and without anything that may be
    a secret.
    """
    if isinstance(value, dict | list | tuple):
        return "a table" if isinstance(value, dict) else "a list"
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str):
        return str(value)
    if may_be_a_key(value):
        return HIDDEN
    text = without_secrets(value)
    return repr(text if len(text) <= LONGEST else text[:LONGEST] + "…")


def without_secrets(text: str) -> str:
    """Return a text without anything that may be a key; an address without user name, password and
    query.
    """
    if may_be_a_key(text):
        return HIDDEN
    if "://" not in text:
        return text
    try:
        parts = urlsplit(text)
        host = parts.netloc.rpartition("@")[2]
        # A user name, a password or a query may be a secret; so may a token in the query of a
        # webhook.
        return urlunsplit((parts.scheme, host, parts.path, "", ""))
    except ValueError:
        return HIDDEN
