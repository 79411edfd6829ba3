"""What an export says of itself: versions, filter, counts, class balance, provenance, licences, digests of its files.

Nothing in a manifest depends on when or where it was written, so that the same data give the same manifest.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from masis import version
from masis.datasets.exports.answers import Judged, Row
from masis.datasets.exports.formats import Format, labelling_interface
from masis.schema.base import Record

VERSION = 1

_LICENCE = ("licence", "license")


class FileDigest(Record):
    """One file of an export."""

    name: str
    rows: int
    bytes: int
    sha256: str


class Tally:
    """Counts what goes into a manifest while rows are written."""

    def __init__(self, form: Format) -> None:
        self._format = form
        self.cases, self.rows = 0, 0
        self.splits: Counter[str] = Counter()
        self._counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._balance: dict[str, Counter[str]] = {name: Counter() for name in form.balance}
        self._models: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._versions: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._labels, self._choices = set[str](), set[str]()

    def leave_out(self, reason: str) -> None:
        """Count a case (or a reviewer's judgement on it) that gives no rows."""
        self._counts["left_out"][reason] += 1

    def case(self, judged: Judged) -> None:
        """Count a case that gives rows."""
        self.cases += 1
        self._counts["states"][judged.outcome.state] += 1
        self._counts["licences"].update(licences(judged.case) or ["not noted"])

    def judgement(self, judged: Judged, rows: int) -> None:
        """Count who judged, with what, and how many rows that gives."""
        self.rows += rows
        self.splits[judged.split] += rows
        if judged.reviewer is not None:
            self._counts["reviewers"][judged.reviewer] += 1
        if (run := judged.judgement.run) is not None:
            for role, model in run.models.items():
                self._models[role][model] += 1
            for name in ("app", "rubric", "offline_rules"):
                self._versions[name][str(run.versions.get(name))] += 1

    def row(self, row: Row) -> None:
        """Count the values of the fields that the format's balance is about."""
        for name, counter in self._balance.items():
            counter["none" if row[name] is None else str(row[name])] += 1
        if self._format.name == "label-studio":
            for region in (each for annotation in row["annotations"] for each in annotation["result"]):
                self._labels.update(region["value"].get("labels", ()))
                self._choices.update(region["value"].get("choices", ()))

    def manifest(self, selection: dict[str, Any], encoding: str, files: list[FileDigest]) -> dict[str, Any]:
        """Return the manifest."""
        made: dict[str, Any] = {
            "manifest": "masis-export",
            "version": VERSION,
            "format": self._format.name,
            "encoding": encoding,
            "made_by": {"app": version.APP, "rubric": version.RUBRIC},
            **selection,
            "counts": {
                "cases": self.cases,
                "rows": self.rows,
                "rows_by_split": _sorted(self.splits),
                "cases_by_state": _sorted(self._counts["states"]),
                "left_out": _sorted(self._counts["left_out"]),
            },
            "class_balance": {name: _sorted(counter) for name, counter in self._balance.items()},
            "provenance": {
                "reviewers": _sorted(self._counts["reviewers"]),
                "models": {role: _sorted(counter) for role, counter in sorted(self._models.items())},
                "audited_with": {name: _sorted(counter) for name, counter in sorted(self._versions.items())},
            },
            "licences": _sorted(self._counts["licences"]),
            "files": [each.model_dump() for each in files],
        }
        if self._format.name == "label-studio":
            made["labelling_interface"] = labelling_interface(self._labels, self._choices)
        return made


def licences(case: dict[str, Any]) -> list[str]:
    """The licences noted on a case: in its metadata, beside its fields, or on its evidence; each once."""
    metadata = case.get("metadata")
    places = [metadata if isinstance(metadata, dict) else {}, case, *case["evidence"]]
    found = [place[name] for place in places for name in _LICENCE if isinstance(place.get(name), str)]
    return list(dict.fromkeys(each.strip()[:200] for each in found if each.strip()))


def _sorted(counter: Counter[str]) -> dict[str, int]:
    return dict(sorted(counter.items()))
