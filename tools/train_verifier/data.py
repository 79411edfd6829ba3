"""Labelled claims for fitting and measuring: each set read as ``masis bench`` reads it, with the same halves."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from masis.audit.sentences import split_sentences
from masis.bench.rows import BenchRow, groups, half_of
from masis.bench.tasks import expertqa_rows, hagrid_rows, summedits_rows, wice_rows

Half = Literal["fit", "report"]
EVALUATED = ("HAGRID", "WiCE", "SummEdits", "ExpertQA", "Triples", "PubMedQA")
PAIRS_FILE = "nli/pairs.jsonl"
PAIRS = {
    "synthetic: altered true claims": ("altered", 1600),
    "synthetic: copied sentence in its passage": ("copied", 700),
    "synthetic: unrelated / sentence removed": ("removed", 700),
    "FEVER dev (SUPPORTS/REFUTES with gold sentences)": ("FEVER", 900),
    "BEGIN (wow dev+test, cmu dev, tc dev)": ("BEGIN", 600),
}
"""Sources of labelled pairs whose licence allows shipped weights: the name of the set, and how many rows are drawn."""


class Row(NamedTuple):
    """A claim, its evidence (id, text) and whether the evidence supports it.

    `keys` are what must not be shared between halves. `training_only` rows were made from others, or come from sets
    that are never reported.
    """

    set: str
    id: str
    claim: str
    evidence: tuple[tuple[str, str], ...]
    supported: bool
    keys: tuple[str, ...]
    training_only: bool = False


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a JSON Lines file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]


def _benchmark_reader(
    name: str, reader: Callable[[dict[str, Any]], Iterable[BenchRow]]
) -> Callable[[dict[str, Any]], Iterator[Row]]:
    def read_rows(raw: dict[str, Any]) -> Iterator[Row]:
        for row in reader(raw):
            # A claim that cites nothing is decided by the citation checks, not by a verifier.
            if not row.cites_nothing:
                yield Row(name, row.id, row.claim, row.evidence, not row.positive, row.keys)

    return read_rows


def _pubmedqa(raw: dict[str, Any]) -> Iterator[Row]:
    evidence = tuple((chunk["id"], chunk["text"]) for chunk in raw["evidence"])
    keys = (raw["query"], *(text for _, text in evidence))
    for number, span in enumerate(split_sentences(raw["answer"])):
        yield Row("PubMedQA", f"{raw['id']}#{number}", raw["answer"][span.start : span.end], evidence, True, keys)


def _triples(raw: dict[str, Any]) -> Iterator[Row]:
    evidence, name = (("passage", raw["premise"]),), hashlib.sha256(raw["premise"].encode()).hexdigest()[:12]
    yield Row("Triples", f"{name}+", raw["true"], evidence, True, (raw["premise"],))
    yield Row("Triples", f"{name}-", raw["faulty"], evidence, False, (raw["premise"],))


FILES: dict[str, Callable[[dict[str, Any]], Iterator[Row]]] = {
    "hagrid_claims.jsonl": _benchmark_reader("HAGRID", hagrid_rows),
    "wice_claims.jsonl": _benchmark_reader("WiCE", wice_rows),
    "summedits.jsonl": _benchmark_reader("SummEdits", summedits_rows),
    "expertqa_cases.jsonl": _benchmark_reader("ExpertQA", expertqa_rows),
    "pubmedqa_cases.jsonl": _pubmedqa,
    "nli/triples.jsonl": _triples,
}


def read(data: Path, half: Half) -> list[tuple[Row, str]]:
    """Return the rows of one half of every set, each with its group; those for training only (`fit`) come last.

    Args:
        data: The folder with the files of `FILES`.
        half: `fit` is the development half; nothing is fitted on `report`.

    """
    result: list[tuple[Row, str]] = []
    for name, reader in FILES.items():
        rows = [row for raw in read_lines(data / name) for row in reader(raw)]
        row_groups = groups([row.keys for row in rows])
        result += [
            (row, f"{row.set}:{group}") for row, group in zip(rows, row_groups, strict=True) if half_of(group) == half
        ]
    if half == "fit":
        result += [*_without_support(data, result), *_pairs(data)]
    return result


def _without_support(data: Path, rows: Sequence[tuple[Row, str]]) -> Iterator[tuple[Row, str]]:
    """Yield supported claims with evidence of the same question or page that does not support them."""
    cited: dict[str, dict[str, None]] = {}
    for row, _ in rows:
        if row.set == "HAGRID":
            cited.setdefault(row.keys[0], {}).update(dict.fromkeys(text for _, text in row.evidence))
    for row, group in rows:
        if row.set == "HAGRID" and row.supported:
            for text in sorted(cited[row.keys[0]].keys() - {text for _, text in row.evidence})[:2]:
                yield row._replace(evidence=(("1", text),), supported=False, training_only=True), group
    pages = {row.id: (row, group) for row, group in rows if row.set == "WiCE"}
    for raw in read_lines(data / "wice_claims.jsonl"):
        page = pages.get(str(raw["meta"]["id"]))
        if page is not None and page[0].supported:
            supporting = {number for group in raw["supporting_sentences"] for number in group}
            rest = "\n\n".join(text for number, text in enumerate(raw["evidence"]) if number not in supporting)
            yield page[0]._replace(evidence=(("document", rest),), supported=False, training_only=True), page[1]


def _pairs(data: Path) -> Iterator[tuple[Row, str]]:
    """Yield labelled pairs of the sources in `PAIRS`, drawn by hash from every second premise."""
    drawn: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for raw in read_lines(data / PAIRS_FILE):
        if raw["source"] in PAIRS:
            digest = _digest(raw["premise"])
            if int(digest, 16) % 2 == 0:
                drawn.setdefault(raw["source"], []).append((_digest(raw["hypothesis"] + digest), raw))
    for source, pairs in drawn.items():
        name, count = PAIRS[source]
        for digest, raw in sorted(pairs, key=lambda pair: pair[0])[:count]:
            evidence = (("passage", raw["premise"]),)
            row = Row(name, digest[:12], raw["hypothesis"], evidence, raw["label"] == 0, (raw["premise"],), True)
            yield row, f"{name}:{_digest(raw['premise'])}"


def _digest(text: str) -> str:
    return hashlib.sha256(" ".join(text.split()).encode()).hexdigest()
