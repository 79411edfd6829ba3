"""Merges the records of a screening, so that each study is in it once.

A repeated record adds its publication types to the first one. If one database marks a study as
retracted, it counts as retracted, no matter which record came first. A notice (retraction, erratum,
expression of concern) is merged with the study that it is about.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from masis.schema.screening import Abstract
from masis.screening.sources.publication import (
    PublicationNotice,
    apply_notice,
    merge_notices,
    notice_of,
    study_title_key,
)
from masis.screening.sources.records import RecordKeys, record_keys, same_record


@dataclass
class AbstractPool:
    """The abstracts of a screening so far, each once, found by id, DOI, PubMed id or title.

    With ``by_title`` False, records with the same title stay separate, because the caller has given
    them ids of their own. A notice that repeats the title of its study is still merged with it.
    ``seen`` holds the ids of all added records, ``changed`` those of abstracts that a later record
    changed. ``absorbed`` maps a notice that was added before its study to the id of the study.
    """

    by_title: bool = True
    by_id: dict[str, Abstract] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    absorbed: dict[str, str] = field(default_factory=dict)
    _keys: dict[str, RecordKeys] = field(default_factory=dict)
    _by_key: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    # Notices whose study hasn't been added yet, by the DOI, PubMed id or title of that study.
    _notices_without_study: dict[tuple[str, str], str] = field(default_factory=dict)

    def add(self, abstract: Abstract) -> Abstract:
        """Add a record, and return the abstract that the pool holds for it.

        That is the record itself if it is new, else the one that was added first.
        """
        # A record can be known by its id, as a notice that was merged with its study, or under
        # another id with the same DOI, PubMed id or title.
        self.seen.add(abstract.id)
        known_id = self.absorbed.get(abstract.id, abstract.id)
        if known_id in self.by_id or (known_id := self._repeated_id(abstract)):
            # An absorbed notice was applied when it was merged, so it isn't applied again.
            if abstract.id == known_id or abstract.id not in self.absorbed:
                self._store(merge_notices(self.by_id[known_id], abstract))
            return self.by_id[known_id]
        if (notice := notice_of(abstract)) is not None:
            study = next(
                (known for key in _study_keys(notice) for known in self._by_key.get(key, ())),
                None,
            )
            if study is not None:
                self.absorbed[abstract.id] = study
                self._store(apply_notice(self.by_id[study], notice.status))
                return self.by_id[study]
            self._notices_without_study.update(dict.fromkeys(_study_keys(notice), abstract.id))
        else:
            abstract = self._with_notices(abstract)
        self.by_id[abstract.id] = abstract
        self._keys[abstract.id] = record_keys(abstract)
        for key in _identity_keys(abstract):
            self._by_key.setdefault(key, []).append(abstract.id)
        return abstract

    def find(self, record: Abstract) -> str | None:
        """Return the pool's id for a record of another tool, or None if the pool lacks it."""
        record_id = str((record.model_extra or {}).get("abstract_id") or record.id)
        return record_id if record_id in self.by_id else self._repeated_id(record) or None

    def _repeated_id(self, abstract: Abstract) -> str:
        """Return the id of the abstract that a record repeats; empty if the record is new."""
        # The most reliable identifier first. ``same_record`` still rejects a candidate with the
        # same title if another identifier differs.
        keys = record_keys(abstract)
        compared = keys if self.by_title else keys._replace(title=None)
        for kind, key in (("doi", keys.doi), ("pmid", keys.pmid), ("title", compared.title)):
            for candidate in self._by_key.get((kind, key or ""), ()):
                if same_record(compared, self._keys[candidate]):
                    return candidate
        return ""

    def _store(self, abstract: Abstract) -> None:
        if self.by_id[abstract.id] != abstract:
            self.by_id[abstract.id] = abstract
            self.changed.add(abstract.id)

    def _with_notices(self, study: Abstract) -> Abstract:
        """Return a study, changed by the notices about it that were added earlier."""
        for key in _identity_keys(study):
            earlier = self._notices_without_study.get(key)
            if earlier is not None and (notice := notice_of(self.by_id[earlier])) is not None:
                self.absorbed[earlier] = study.id
                study = apply_notice(study, notice.status)
        return study


def _study_keys(notice: PublicationNotice) -> Iterator[tuple[str, str]]:
    """Yield the identifiers of the study that a notice is about."""
    yield from (("doi", doi) for doi in sorted(notice.dois))
    yield from (("pmid", pmid) for pmid in sorted(notice.pmids))
    if notice.title is not None:
        yield "study", notice.title


def _identity_keys(abstract: Abstract) -> Iterator[tuple[str, str]]:
    keys = record_keys(abstract)
    by_kind = (
        ("doi", keys.doi),
        ("pmid", keys.pmid),
        ("title", keys.title),
        ("study", study_title_key(abstract.title)),
    )
    yield from ((kind, key) for kind, key in by_kind if key)


def with_notices(abstracts: Iterable[Abstract]) -> list[Abstract]:
    """Return the same records, with the notices among them applied to their studies."""
    pool, records = AbstractPool(by_title=False), list(abstracts)
    for abstract in records:
        pool.add(abstract)
    return [pool.by_id.get(abstract.id, abstract) for abstract in records]
