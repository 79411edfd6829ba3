"""Synonyms, from the word list beside this file, as a lookup by stem."""

from functools import cache, lru_cache
from pathlib import Path

from masis.offline.text.tokens import prefix_key, stem


@cache
def synonym_keys() -> dict[str, tuple[str, ...]]:
    """Return for each stem the groups of `synonyms.txt` it belongs to, as keys ("=12")."""
    text = (Path(__file__).parent / "synonyms.txt").read_text(encoding="utf-8")
    groups: dict[str, list[str]] = {}
    for number, line in enumerate(line for line in text.splitlines() if line and not line.startswith("#")):
        # Phrases ("pass_away") and compounds ("well-known") stand for their parts only in prose: they are left out.
        for root in dict.fromkeys(stem(word) for word in line.split() if "_" not in word and "-" not in word):
            groups.setdefault(root, []).append(f"={number}")
    return {root: tuple(keys) for root, keys in groups.items()}


@lru_cache(maxsize=65536)
def loose_keys(root: str) -> tuple[str, ...]:
    """Return the keys under which a stem meets its relatives: its prefix ("~acqui") and its synonym groups ("=12")."""
    prefix = prefix_key(root)
    return (*((f"~{prefix}",) if prefix else ()), *synonym_keys().get(root, ()))
