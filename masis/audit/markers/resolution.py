"""Which evidence a reference names, if any: by id, by number, by position, by source.

The order, strongest first, each recorded as ``resolved_by``:

``exact``       the id to the letter
``normalised``  ignoring case and blanks; then also taking ``-``, ``_``, ``:``, a blank and nothing between word and
                number as the same (``Chunk 1``, ``chunk-1`` for ``chunk_1``, ``PMID 9`` for ``PMID:9``); then ignoring
                zeros before the number (``chunk_001``)
``suffix``      a number, to the one id that ends in it (``1`` for ``chunk_1``, never for ``chunk_11``)
``position``    a number, counting from 1, only where no id ends in a number (the ids are opaque); in styles that count
                from 0 by definition, the place
``source``      a link, or a name, to the chunks whose source it is

Where a step finds two candidates it finds none: an ambiguous reference never resolves silently.
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
    """The evidence a reference names and how that was found; both None where it names none."""

    evidence_id: str | None
    how: ResolvedBy | None


NOTHING = Resolution(None, None)

_SEPARATORS = re.compile(r"(?:(?<=[^\W\d_]):)?[\s_\-‐‑]+|(?<=[^\W\d_]):(?=\d)|(?<=[^\W\d_])(?=\d)")
_PADDED = re.compile(r"([^\W\d_]+(?:-[^\W\d_]+)*-)0*(\d+)")
_BLANKS = re.compile(r"\s+")
_NUMBERED = re.compile(
    r"(?:.*[^0-9A-Za-z]|[A-Za-z]+)?0*(\d{1,9})(?:\.(?:pdf|txt|md|html?|docx?|json))?", re.DOTALL
)
_HEX = re.compile(r"(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{6,}", re.IGNORECASE)
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_DIGITS = re.compile(r"\d+")
_FILE_NAME = re.compile(
    r"\.(?:pdf|docx?|txt|md|html?|csv|tsv|xlsx?|pptx?|json|xml|rtf|epub)\Z", re.IGNORECASE
)
_LOWER, _UPPER, _TITLE = re.compile(r"[a-z]+"), re.compile(r"[A-Z]+"), re.compile(r"[A-Z][a-z]+")
_AUTHOR_YEAR = re.compile(r"[A-Za-z]{3,20}(?:19|20)\d\d[a-z]?")
_SLUG = re.compile(r"[a-z]+(?:[_-][a-z]+)+")
_TRACKING = re.compile(
    r"(?<=[?&])(?:utm_\w{1,30}|gclid|fbclid|msclkid|mc_[ce]id)=[^&]*+&?", re.IGNORECASE
)
_SCHEME = re.compile(r"\A(?:https?://)?(?:www\.)?", re.IGNORECASE)


def evidence_index(evidence: Sequence[Evidence]) -> EvidenceIds:
    """Return the index of a case's evidence."""
    return index_of(
        tuple([chunk.id for chunk in evidence]), tuple([chunk.source for chunk in evidence])
    )


@lru_cache(maxsize=64)
def index_of(ids: tuple[str, ...], sources: tuple[str | None, ...]) -> EvidenceIds:
    """The index of a case's evidence, kept for the iterations that follow."""
    return EvidenceIds(ids, sources)


class EvidenceIds:
    """The ids and sources of a case's evidence, looked up by what an answer writes."""

    def __init__(self, ids: tuple[str, ...], sources: tuple[str | None, ...] = ()) -> None:
        self.ids, self.exact = ids, frozenset(ids)
        self.is_unknown = False
        """Whether the evidence isn't known, so that only what is surely a marker may be read as
        one.
        """
        self.bare_numbers = all(id_.isdecimal() for id_ in ids)
        self.bracketed = tuple(
            sorted((id_ for id_ in ids if "[" in id_ or "]" in id_), key=len, reverse=True)
        )
        """Ids that hold brackets themselves, the longest first."""
        self.has_worded_ids = any(map(has_letter_and_digit, ids))
        """Whether any id holds a letter and a digit, so that it can stand in round brackets."""
        self.has_addresses = any(
            "://" in name for name in [*ids, *(source or "" for source in sources)]
        )
        """Whether evidence is named by web addresses, so that a link is this case's way
        of citing.
        """
        self._sources = sources
        self._numbers = _unique(
            (number, id_) for id_ in ids if (number := _number_of(id_)) is not None
        )
        self.highest_number = max([len(ids), *self._numbers])
        """The highest number an id ends in, at least the number of chunks."""

    @classmethod
    def unknown(cls) -> EvidenceIds:
        """Return an index for texts whose evidence isn't known."""
        index = cls(())
        index.is_unknown = True
        return index

    def resolve(self, name: str) -> Resolution:
        """What a reference as written names, sources aside."""
        if name in self.exact:
            return Resolution(name, "exact")
        if name.isdecimal():
            return self._resolve_number(int(name)) if len(name) <= 9 else NOTHING
        found = next(filter(None, (table.get(form(name)) for form, table in self._forms)), None)
        return Resolution(found, "normalised") if found else NOTHING

    def _resolve_number(self, number: int) -> Resolution:
        """What a bare number names: the one id ending in it, else the position where ids are
        opaque.
        """
        if number in self._numbers:
            found = self._numbers[number]
            return Resolution(found, "suffix") if found else NOTHING
        if not self._numbers and 1 <= number <= len(self.ids):
            return Resolution(self.ids[number - 1], "position")
        return NOTHING

    # Most answers cite by number or by the id to the letter, so that these tables are seldom
    # needed.

    @cached_property
    def _forms(self) -> list[tuple[Callable[[str], str], dict[str, str | None]]]:
        return [
            (form, _unique((form(id_), id_) for id_ in self.ids))
            for form in (_fold, _loosen, _unpad)
        ]

    @cached_property
    def _by_source(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for id_, source in zip(self.ids, self._sources, strict=False):
            for name in {
                _normalize_address(source or ""),
                _normalize_address(id_) if "://" in id_ else "",
            } - {""}:
                found[name].append(id_)
        return dict(found)

    @cached_property
    def has_file_names(self) -> bool:
        """Whether evidence is named by files, so that a file's name in brackets is this case's way
        of citing.
        """
        return any(map(_FILE_NAME.search, [*self.ids, *(source or "" for source in self._sources)]))

    def resolve_from_zero(self, number: int) -> Resolution:
        """What a number names that counts from 0: the id that ends in it if the ids start at 0,
        else the place.
        """
        if 0 in self._numbers:
            return self._resolve_number(number)
        return Resolution(self.ids[number], "position") if number < len(self.ids) else NOTHING

    def resolve_source(self, name: str) -> tuple[str, ...]:
        """The chunks whose source is this address or name; several where several come from one
        source.
        """
        return tuple(self._by_source.get(_normalize_address(name), ()))

    def is_shaped(self, name: str, *, loosely: bool = True) -> bool:
        """Whether a name that names no evidence is written in the style of this case's ids, and so
        poses as one.

        ``loosely``: also where word and number are joined otherwise, as ``PMID 12`` beside
            ``PMID:99``.
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
        """Whether a name behind ``@`` reads as a bibliography's key: it holds a number, or the ids
        are plain words.
        """
        return any(map(str.isdecimal, name)) or (
            bool(self.ids) and all(id_.isalpha() for id_ in self.ids)
        )

    def is_slug(self, name: str) -> bool:
        """Whether the name is words joined like this case's ids: ``earnings-call`` beside
        ``annual-report``.
        """
        return self._styles.slugs and _SLUG.fullmatch(name) is not None

    @cached_property
    def _styles(self) -> _Styles:
        hashes = {id_ for id_ in self.ids if _hash_like(id_)}
        named = [id_ for id_ in self.ids if id_ not in hashes]
        numbered = [id_ for id_ in named if any(map(str.isdecimal, id_)) and not id_.isdecimal()]
        skeletons = frozenset(map(_skeleton, numbered))
        return _Styles(
            skeletons,
            loose_skeletons=frozenset(
                _skeleton(loose) for loose in map(_loosen, named) if _PADDED.fullmatch(loose)
            ),
            # where the words of the ids vary (smith-2004, jones-2011), their classes stand for them
            classes=(
                frozenset(map(_classes, self.ids)) - {""} if len(skeletons) > 1 else frozenset()
            ),
            hash_lengths=frozenset(map(len, hashes)),
            single_letters=bool(self.ids)
            and all(len(id_) == 1 and id_.isalpha() for id_ in self.ids),
            slugs=len(self.ids) > 1 and all(_SLUG.fullmatch(id_) for id_ in self.ids),
        )


class _Styles(NamedTuple):
    """How the ids of a case are written."""

    skeletons: frozenset[str]
    loose_skeletons: frozenset[str]
    classes: frozenset[str]
    hash_lengths: frozenset[int]
    single_letters: bool
    slugs: bool


Key = TypeVar("Key")


def _unique(pairs: Iterable[tuple[Key, str]]) -> dict[Key, str | None]:
    table: dict[Key, str | None] = {}
    for key, id_ in pairs:
        table[key] = None if key in table else id_
    return table


def _fold(name: str) -> str:
    return _BLANKS.sub("", name).casefold()


def _loosen(name: str) -> str:
    return _SEPARATORS.sub("-", name.strip().casefold())


def _unpad(name: str) -> str:
    """The loose form of a word and a number, without zeros before the number: ``chunk-1`` for
    ``chunk_001``.
    """
    loose = _loosen(name)
    match = _PADDED.fullmatch(loose)
    return f"{match.group(1)}{match.group(2)}" if match else loose


def _normalize_address(name: str) -> str:
    """Return an address without what doesn't matter to what it names.

    That is the scheme, www, a fragment, a closing slash, case, and parameters by which links are
    tracked: ChatGPT adds ``utm_source`` to what it cites.
    """
    name = name.strip()
    if "://" in name:
        name = name.partition("#")[0]
        name = _TRACKING.sub("", name).rstrip("?&")
    return _SCHEME.sub("", name).rstrip("/").casefold()


def _number_of(id_: str) -> int | None:
    """The number an id ends in; None for hashes and addresses, whose digits mean nothing."""
    if "://" in id_ or _hash_like(id_):
        return None
    match = _NUMBERED.fullmatch(id_)
    return int(match.group(1)) if match else None


def _hash_like(name: str) -> bool:
    if _HEX.fullmatch(name) or _UUID.fullmatch(name):
        return True
    if not (5 <= len(name) <= 40 and name.isalnum() and name.isascii()):
        return False
    changes = sum(a.isdecimal() != b.isdecimal() for a, b in pairwise(name))
    return changes >= 2


def _skeleton(name: str) -> str:
    """``chunk_12`` as ``chunk_0``; without letters all but the last number keep their length
    (``250-1`` as ``3-0``).
    """
    if any(map(str.isalpha, name)):
        return _DIGITS.sub("0", name).casefold()
    head = name.rstrip("0123456789")
    return _DIGITS.sub(lambda run: str(len(run.group())), head) + (
        "0" if len(head) < len(name) else ""
    )


def _classes(name: str) -> str:
    """``smith-2004`` as ``a-0``; empty where there is no digit, or nothing between word and number
    but a year.
    """
    if len(name) > 80 or not _DIGITS.search(name) or any(map(str.isspace, name)):
        return ""
    if name.isalnum() and not _AUTHOR_YEAR.fullmatch(name):
        return ""
    return _LOWER.sub("a", _UPPER.sub("A", _TITLE.sub("\x01", _DIGITS.sub("0", name))))


def has_letter_and_digit(name: str) -> bool:
    """Whether a name holds a letter and a digit."""
    return any(map(str.isalpha, name)) and any(map(str.isdecimal, name))
