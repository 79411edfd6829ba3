"""The records of a screening, each study once: repeated records and notices are joined with the
study they are of.

A repeated record adds its publication types to the first one: what one database has marked as
retracted is retracted, whichever record came first. A notice (retraction, erratum, expression of
concern) and its study are one record.
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
    """The abstracts of a screening so far, each once, by id and by what else a record is known by.

    ``by_title`` False takes no likeness of titles for sameness: whoever gave the records gave them
    ids of their own. A notice that repeats the title of its study is joined with it all the same.
    ``seen`` holds the ids of all records added; ``changed`` names the abstracts that a later record
    changed, ``absorbed`` the notices that were added before their study, with its id.
    """

    by_title: bool = True
    by_id: dict[str, Abstract] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    absorbed: dict[str, str] = field(default_factory=dict)
    _marks: dict[str, RecordKeys] = field(default_factory=dict)
    _by_mark: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    _waiting: dict[tuple[str, str], str] = field(default_factory=dict)
    """Notices whose study has not been added, by what it is known by."""

    def add(self, abstract: Abstract) -> Abstract:
        """Return the abstract as the pool knows it: itself if it is new, else the one that came
        first.
        """
        self.seen.add(abstract.id)
        same = self.absorbed.get(abstract.id, abstract.id)
        if same in self.by_id or (same := self._same(abstract)):
            if abstract.id == same or abstract.id not in self.absorbed:
                self._store(merge_notices(self.by_id[same], abstract))
            return self.by_id[same]
        if (notice := notice_of(abstract)) is not None:
            study = next(
                (each for key in _about(notice) for each in self._by_mark.get(key, ())), None
            )
            if study is not None:
                self.absorbed[abstract.id] = study
                self._store(apply_notice(self.by_id[study], notice.status))
                return self.by_id[study]
            self._waiting.update(dict.fromkeys(_about(notice), abstract.id))
        else:
            abstract = self._with_notices(abstract)
        self.by_id[abstract.id] = abstract
        self._marks[abstract.id] = record_keys(abstract)
        for key in _identity_keys(abstract):
            self._by_mark.setdefault(key, []).append(abstract.id)
        return abstract

    def find(self, record: Abstract) -> str | None:
        """Return the id of the abstract that a record of another tool is; None where the pool
        doesn't hold it.
        """
        given = str((record.model_extra or {}).get("abstract_id") or record.id)
        return given if given in self.by_id else self._same(record) or None

    def _same(self, abstract: Abstract) -> str:
        """Return the id of the abstract that a record repeats; empty where it is new."""
        keys = record_keys(abstract)
        kept = keys if self.by_title else keys._replace(title=None)
        for kind, key in (("doi", keys.doi), ("pmid", keys.pmid), ("title", kept.title)):
            for other in self._by_mark.get((kind, key or ""), ()):
                if same_record(kept, self._marks[other]):
                    return other
        return ""

    def _store(self, abstract: Abstract) -> None:
        if self.by_id[abstract.id] != abstract:
            self.by_id[abstract.id] = abstract
            self.changed.add(abstract.id)

    def _with_notices(self, study: Abstract) -> Abstract:
        """Return a study with what the notices added before it say of it; they are absorbed."""
        for key in _identity_keys(study):
            earlier = self._waiting.get(key)
            if earlier is not None and (notice := notice_of(self.by_id[earlier])) is not None:
                self.absorbed[earlier] = study.id
                study = apply_notice(study, notice.status)
        return study


def _about(notice: PublicationNotice) -> Iterator[tuple[str, str]]:
    """Yield what the study of a notice is known by."""
    yield from (("doi", each) for each in sorted(notice.dois))
    yield from (("pmid", each) for each in sorted(notice.pmids))
    if notice.title is not None:
        yield "study", notice.title


def _identity_keys(abstract: Abstract) -> Iterator[tuple[str, str]]:
    keys = record_keys(abstract)
    named = (
        ("doi", keys.doi),
        ("pmid", keys.pmid),
        ("title", keys.title),
        ("study", study_title_key(abstract.title)),
    )
    yield from ((kind, key) for kind, key in named if key)


def with_notices(abstracts: Iterable[Abstract]) -> list[Abstract]:
    """Return the same records, each with what the others say of it: notices of a file reach their
    studies.
    """
    pool, given = AbstractPool(by_title=False), list(abstracts)
    for each in given:
        pool.add(each)
    return [pool.by_id.get(each.id, each) for each in given]
