"""Synonyms and antonyms, from the two word lists beside this file, as lookups by stem."""

from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path

from masis.offline.text.tokens import Token, prefix_key, stem

_HERE = Path(__file__).parent


def _lines(name: str) -> list[str]:
    text = (_HERE / name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


_PHRASES = {
    tuple(stem(word) for word in phrase.split()): stem(meaning)
    for phrase, meaning in {
        "go on": "continue", "carry on": "continue", "keep on": "continue", "rule out": "exclude",
        "leave out": "exclude", "turn down": "reject", "vote down": "reject", "throw out": "reject",
        "strike down": "overturn", "set aside": "overturn", "shut down": "close", "go up": "rise", "move up": "rise",
        "come down": "fall", "go down": "fall", "bring down": "reduce", "cut back": "reduce", "give up": "stop",
        "put off": "postpone", "call off": "cancel", "phase out": "end", "fall short": "miss", "switch on": "enable",
        "turn on": "enable", "switch off": "disable", "turn off": "disable", "keep out": "exclude",
        "hold back": "withhold", "give back": "return", "go under": "fail",
    }.items()
}  # fmt: skip

_VERBS = frozenset(verb for verb, _ in _PHRASES)


def phrases(words: Sequence[Token]) -> dict[int, str]:
    """Return the verbs that mean one word together with their particle ("goes on": continue): the verb's index, the
    word's stem.
    """
    found = {}
    for i in range(len(words) - 1):
        if words[i].stem not in _VERBS:
            continue
        meaning = _PHRASES.get((words[i].stem, words[i + 1].stem))
        if meaning is not None:
            found[i] = meaning
    return found


def _stems(words: str) -> list[str]:
    # Phrases ("pass_away") and compounds ("well-known") stand for their parts only in prose: they are left out here.
    return [stem(word) for word in words.split() if "_" not in word and "-" not in word]


@cache
def synonym_keys() -> dict[str, tuple[str, ...]]:
    """Return for each stem the groups of `synonyms.txt` it belongs to, as keys ("=12")."""
    groups: dict[str, list[str]] = {}
    for number, line in enumerate(_lines("synonyms.txt")):
        for root in dict.fromkeys(_stems(line)):
            groups.setdefault(root, []).append(f"={number}")
    return {root: tuple(keys) for root, keys in groups.items()}


@cache
def antonyms() -> dict[str, frozenset[str]]:
    """Return for each stem its antonyms in `antonyms.txt`."""
    opposed: dict[str, set[str]] = {}
    for line in _lines("antonyms.txt"):
        left, right = (frozenset(_stems(side)) for side in line.split("|"))
        for root in left - right:
            opposed.setdefault(root, set()).update(right - left)
        for root in right - left:
            opposed.setdefault(root, set()).update(left - right)
    return {root: frozenset(others) for root, others in opposed.items()}


@lru_cache(maxsize=65536)
def loose_keys(root: str) -> tuple[str, ...]:
    """Return the keys under which a stem meets its relatives: its prefix ("~acqui") and its synonym groups ("=12")."""
    prefix = prefix_key(root)
    return (*((f"~{prefix}",) if prefix else ()), *synonym_keys().get(root, ()))
