"""Finds the evidence that a reference names: by id, number, position or source.

The steps, strongest first, each recorded as ``resolved_by``:

``exact``       the exact id
``normalised``  ignoring case and spaces; then also with ``-``, ``_``, ``:``, a space and nothing
                between word and number as the same (``Chunk 1``, ``chunk-1`` for ``chunk_1``,
                ``PMID 9`` for ``PMID:9``); then ignoring zeros before the number (``chunk_001``)
``suffix``      a number, for the one id that ends in it (``1`` for ``chunk_1``, never for
                ``chunk_11``)
``position``    a number, counting from 1, only if no id ends in a number (the ids are opaque);
                in styles that count from 0, the position
``source``      a link or a name, for the chunks with that source

An ambiguous match counts as no match, so that a reference never resolves silently to a guess.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import NamedTuple, TypeVar

from masis.schema.audit import ResolvedBy
from masis.schema.case import Evidence


class Resolution(NamedTuple):
    """The evidence that a reference names and the step that found it, or None for both."""

    evidence_id: str | None
    how: ResolvedBy | None


NOTHING = Resolution(None, None)

# Any separator between word and number, or none: "chunk_1", "chunk 1", "chunk:1", "chunk1". The
# lookbehinds require a letter before a colon or before no separator, so that "4:0" stays.
_SEPARATORS = re.compile(r"(?:(?<=[^\W\d_]):)?[\s_\-‐‑]+|(?<=[^\W\d_]):(?=\d)|(?<=[^\W\d_])(?=\d)")
# A word and a number with leading zeros, in the loose form: "chunk-001".
_PADDED = re.compile(r"([^\W\d_]+(?:-[^\W\d_]+)*-)0*(\d+)")
_WHITESPACE = re.compile(r"\s+")
# An id that ends in a number, perhaps before a file extension: "chunk_12", "doc-003.pdf".
_NUMBERED = re.compile(
    r"(?:.*[^0-9A-Za-z]|[A-Za-z]+)?0*(\d{1,9})(?:\.(?:pdf|txt|md|html?|docx?|json))?", re.DOTALL
)
# At least six hexadecimal digits, with both letters and digits: "3f2a9c".
_HEX = re.compile(r"(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{6,}", re.IGNORECASE)
# "123e4567-e89b-12d3-a456-426614174000" (RFC 9562).
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_DIGITS = re.compile(r"\d+")
# "report.pdf": the extension of a document.
_FILE_NAME = re.compile(
    r"\.(?:pdf|docx?|txt|md|html?|csv|tsv|xlsx?|pptx?|json|xml|rtf|epub)\Z", re.IGNORECASE
)
# The character classes of a name: "smith", "NASA", "Smith". See _classes.
_LOWER, _UPPER, _TITLE = re.compile(r"[a-z]+"), re.compile(r"[A-Z]+"), re.compile(r"[A-Z][a-z]+")
# A BibTeX key: "smith2004", "Jones1999a".
_AUTHOR_YEAR = re.compile(r"[A-Za-z]{3,20}(?:19|20)\d\d[a-z]?")
# Words joined by hyphens or underscores: "annual-report".
_SLUG = re.compile(r"[a-z]+(?:[_-][a-z]+)+")
# "utm_source=chatgpt.com&", "fbclid=...": parameters that track a visit and don't change the page.
# The lookbehind keeps the "?" or "&" before it.
_TRACKING = re.compile(
    r"(?<=[?&])(?:utm_\w{1,30}|gclid|fbclid|msclkid|mc_[ce]id)=[^&]*+&?", re.IGNORECASE
)
# "https://www." at the beginning of an address.
_SCHEME = re.compile(r"\A(?:https?://)?(?:www\.)?", re.IGNORECASE)


def evidence_index(evidence: Sequence[Evidence]) -> EvidenceIds:
    """Return the index of a case's evidence."""
    return index_of(
        tuple([chunk.id for chunk in evidence]), tuple([chunk.source for chunk in evidence])
    )


@lru_cache(maxsize=64)
def index_of(ids: tuple[str, ...], sources: tuple[str | None, ...]) -> EvidenceIds:
    """Return the index of these ids and sources, cached for later iterations."""
    return EvidenceIds(ids, sources)


class EvidenceIds:
    """The ids and sources of a case's evidence, with lookups for the text of an answer."""

    def __init__(self, ids: tuple[str, ...], sources: tuple[str | None, ...] = ()) -> None:
        self.ids, self.exact = ids, frozenset(ids)
        self.is_unknown = False
        """Whether the evidence isn't known; only unmistakable markers are read then."""
        self.bare_numbers = all(id_.isdecimal() for id_ in ids)
        self.bracketed = tuple(
            sorted((id_ for id_ in ids if "[" in id_ or "]" in id_), key=len, reverse=True)
        )
        """Ids that contain brackets themselves, the longest first."""
        self.has_worded_ids = any(map(has_letter_and_digit, ids))
        """Whether any id has a letter and a digit, so that it can be in round brackets."""
        self.has_addresses = any(
            "://" in name for name in [*ids, *(source or "" for source in sources)]
        )
        """Whether evidence has web addresses, so that links are citations in this case."""
        self._sources = sources
        self._numbers = _unambiguous(
            (number, id_) for id_ in ids if (number := _number_of(id_)) is not None
        )
        self.highest_number = max([len(ids), *self._numbers])
        """The highest number that an id ends in, at least the number of chunks."""

    @classmethod
    def unknown(cls) -> EvidenceIds:
        """Return an index for texts whose evidence isn't known."""
        index = cls(())
        index.is_unknown = True
        return index

    def resolve(self, name: str) -> Resolution:
        """Return the evidence of a reference as written, except by source."""
        if name in self.exact:
            return Resolution(name, "exact")
        if name.isdecimal():
            return self._resolve_number(int(name)) if len(name) <= 9 else NOTHING
        match = next(filter(None, (table.get(form(name)) for form, table in self._forms)), None)
        return Resolution(match, "normalised") if match else NOTHING

    def _resolve_number(self, number: int) -> Resolution:
        """Return the evidence of a bare number.

        That is the one id that ends in the number, or the chunk at that position if no id ends in
        a number.
        """
        if number in self._numbers:
            match = self._numbers[number]
            return Resolution(match, "suffix") if match else NOTHING
        if not self._numbers and 1 <= number <= len(self.ids):
            return Resolution(self.ids[number - 1], "position")
        return NOTHING

    # Computed on demand, because most answers cite by number or exact id.

    @cached_property
    def _forms(self) -> list[tuple[Callable[[str], str], dict[str, str | None]]]:
        return [
            (form, _unambiguous((form(id_), id_) for id_ in self.ids))
            for form in (_fold, _loosen, _unpad)
        ]

    @cached_property
    def _by_source(self) -> dict[str, list[str]]:
        ids_by_source: dict[str, list[str]] = defaultdict(list)
        for id_, source in zip(self.ids, self._sources, strict=False):
            for name in {
                _normalize_address(source or ""),
                _normalize_address(id_) if "://" in id_ else "",
            } - {""}:
                ids_by_source[name].append(id_)
        return dict(ids_by_source)

    @cached_property
    def has_file_names(self) -> bool:
        """Whether any evidence is a file, so that a file name in brackets is a citation."""
        return any(map(_FILE_NAME.search, [*self.ids, *(source or "" for source in self._sources)]))

    def resolve_from_zero(self, number: int) -> Resolution:
        """Return the evidence of a number counted from 0.

        That is the id that ends in the number if ids start at 0, else the chunk at that position.
        """
        if 0 in self._numbers:
            return self._resolve_number(number)
        return Resolution(self.ids[number], "position") if number < len(self.ids) else NOTHING

    def resolve_source(self, name: str) -> tuple[str, ...]:
        """Return the chunks with this address or name as their source."""
        return tuple(self._by_source.get(_normalize_address(name), ()))

    def is_shaped(self, name: str, *, loosely: bool = True) -> bool:
        """Return whether a name without evidence has the style of this case's ids.

        With ``loosely``, word and number may be joined differently: ``PMID 12`` for ``PMID:99``.
        """
        styles = self._styles
        if _skeleton(name) in styles.skeletons or (
            loosely and _skeleton(_loosen(name)) in styles.loose_skeletons
        ):
            return True
        if _classes(name) in styles.classes:
            return True
        if styles.single_letters and len(name) == 1 and name.isalpha() and name.isascii():
            return name.isupper() == self.ids[0].isupper()
        return any(abs(len(name) - length) <= 2 for length in styles.hash_lengths) and _hash_like(
            name
        )

    def is_keyed(self, name: str) -> bool:
        """Return whether a name after ``@`` reads like a bibliography key.

        It does if it has a digit, or if all ids are words.
        """
        return any(map(str.isdecimal, name)) or (
            bool(self.ids) and all(id_.isalpha() for id_ in self.ids)
        )

    def is_slug(self, name: str) -> bool:
        """Return whether the name has words joined like this case's ids: ``annual-report``."""
        return self._styles.slugs and _SLUG.fullmatch(name) is not None

    @cached_property
    def _styles(self) -> _Styles:
        hash_ids = {id_ for id_ in self.ids if _hash_like(id_)}
        named_ids = [id_ for id_ in self.ids if id_ not in hash_ids]
        numbered_ids = [
            id_ for id_ in named_ids if any(map(str.isdecimal, id_)) and not id_.isdecimal()
        ]
        skeletons = frozenset(map(_skeleton, numbered_ids))
        return _Styles(
            skeletons,
            loose_skeletons=frozenset(
                _skeleton(loose) for loose in map(_loosen, named_ids) if _PADDED.fullmatch(loose)
            ),
            # If the words of the ids vary (smith-2004, jones-2011), their character classes are
            # compared instead.
            classes=(
                frozenset(map(_classes, self.ids)) - {""} if len(skeletons) > 1 else frozenset()
            ),
            hash_lengths=frozenset(map(len, hash_ids)),
            single_letters=bool(self.ids)
            and all(len(id_) == 1 and id_.isalpha() for id_ in self.ids),
            slugs=len(self.ids) > 1 and all(_SLUG.fullmatch(id_) for id_ in self.ids),
        )


class _Styles(NamedTuple):
    """The styles in which the ids of a case are written."""

    skeletons: frozenset[str]
    loose_skeletons: frozenset[str]
    classes: frozenset[str]
    hash_lengths: frozenset[int]
    single_letters: bool
    slugs: bool


Key = TypeVar("Key")


def _unambiguous(pairs: Iterable[tuple[Key, str]]) -> dict[Key, str | None]:
    table: dict[Key, str | None] = {}
    for key, id_ in pairs:
        table[key] = None if key in table else id_
    return table


def _fold(name: str) -> str:
    return _WHITESPACE.sub("", name).casefold()


def _loosen(name: str) -> str:
    return _SEPARATORS.sub("-", name.strip().casefold())


def _unpad(name: str) -> str:
    """Return the loose form without zeros before the number: ``chunk-1`` for ``chunk_001``."""
    loose = _loosen(name)
    match = _PADDED.fullmatch(loose)
    return f"{match.group(1)}{match.group(2)}" if match else loose


def _normalize_address(name: str) -> str:
    """Return an address without the parts that don't change what it names.

    Those are the scheme, www, a fragment, a trailing slash, case, and tracking parameters: ChatGPT
    adds ``utm_source`` to the links it cites.
    """
    name = name.strip()
    if "://" in name:
        name = name.partition("#")[0]
        name = _TRACKING.sub("", name).rstrip("?&")
    return _SCHEME.sub("", name).rstrip("/").casefold()


def _number_of(id_: str) -> int | None:
    """Return the number that an id ends in.

    It is None for hashes and addresses, because their digits don't number anything.
    """
    if "://" in id_ or _hash_like(id_):
        return None
    match = _NUMBERED.fullmatch(id_)
    return int(match.group(1)) if match else None


def _hash_like(name: str) -> bool:
    if _HEX.fullmatch(name) or _UUID.fullmatch(name):
        return True
    if not (5 <= len(name) <= 40 and name.isalnum() and name.isascii()):
        return False
    # Letters and digits alternate in a random id ("k3x9q"), but not in "chunk12".
    return sum(a.isdecimal() != b.isdecimal() for a, b in pairwise(name)) >= 2


def _skeleton(name: str) -> str:
    """Return a name with its numbers replaced: ``chunk_0`` for ``chunk_12``.

    Without letters, each number but the last becomes its length: ``3-0`` for ``250-1``.
    """
    if any(map(str.isalpha, name)):
        return _DIGITS.sub("0", name).casefold()
    head = name.rstrip("0123456789")
    return _DIGITS.sub(lambda run: str(len(run.group())), head) + (
        "0" if len(head) < len(name) else ""
    )


def _classes(name: str) -> str:
    """Return the character classes of a name: ``a-0`` for ``smith-2004``.

    The result is empty if the name has no digit, or if its word and number touch and the number
    isn't a year.
    """
    if len(name) > 80 or not _DIGITS.search(name) or any(map(str.isspace, name)):
        return ""
    if name.isalnum() and not _AUTHOR_YEAR.fullmatch(name):
        return ""
    return _LOWER.sub("a", _UPPER.sub("A", _TITLE.sub("\x01", _DIGITS.sub("0", name))))


def has_letter_and_digit(name: str) -> bool:
    """Return whether a name has a letter and a digit."""
    return any(map(str.isalpha, name)) and any(map(str.isdecimal, name))
