"""The layouts of exports that are folders: their files, and the lines that a row adds to each.

``Format.layout`` names a layout. ``LAYOUTS`` is the only list of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar

from pydantic_core import to_json

from masis.datasets.exports.answers import Row
from masis.datasets.exports.splits import SPLITS

Line = tuple[str, bytes]
"""A file's path in the folder, and a line to append to it."""


class Layout(ABC):
    """The files of one folder; an instance writes one export.

    Attributes:
        headings: The first line of each file, by its path. Files are written even if they have no
            rows, so that a loader finds every split.

    """

    headings: ClassVar[dict[str, bytes]]

    @abstractmethod
    def lines(self, side: str, row: Row) -> Iterator[Line]:
        """Yield the lines that a row of one side of the split adds."""


class SplitsLayout(Layout):
    """One JSON Lines file per split, as Hugging Face's ``datasets`` loads them."""

    headings: ClassVar = {f"data/{side}.jsonl": b"" for side in SPLITS}

    def lines(self, side: str, row: Row) -> Iterator[Line]:
        """Yield the row for the file of its split."""
        yield f"data/{side}.jsonl", to_json(row) + b"\n"


class _RetrievalLayout(Layout):
    """A collection: each topic and each document once, and the relevance of judged pairs."""

    topics: ClassVar[str]
    documents: ClassVar[str]

    def __init__(self) -> None:
        # Ids only; they are 16 characters, while the texts of a collection may not fit into memory.
        self._written: set[tuple[str, str]] = set()

    def _once(self, file: str, name: str, record: Row) -> Iterator[Line]:
        if (file, name) not in self._written:
            self._written.add((file, name))
            yield file, to_json(record) + b"\n"


class TrecLayout(_RetrievalLayout):
    """``qrels.txt`` in TREC's format (trec_eval), and what its ids stand for."""

    headings: ClassVar = {"topics.jsonl": b"", "docs.jsonl": b"", "qrels.txt": b""}

    def lines(self, side: str, row: Row) -> Iterator[Line]:
        """Yield the topic, the document and ``topic 0 doc rel`` if the pair was judged."""
        topic, doc = row["topic"], row["doc"]
        about = {"topic": topic, "case_id": row["case_id"], "split": side, "text": row["question"]}
        yield from self._once("topics.jsonl", topic, about)
        text = {"doc": doc, "evidence_id": row["evidence_id"], "source": row["source"]}
        yield from self._once("docs.jsonl", doc, {**text, "text": row["text"]})
        if row["relevance"] is not None:
            yield "qrels.txt", f"{topic} 0 {doc} {row['relevance']}\n".encode()


_BEIR_SIDES = {"train": "train", "validation": "dev", "test": "test"}
"""BEIR's names of the splits."""


class BeirLayout(_RetrievalLayout):
    """A folder as ``beir.datasets.data_loader.GenericDataLoader`` reads it."""

    headings: ClassVar = {"corpus.jsonl": b"", "queries.jsonl": b""} | {
        f"qrels/{name}.tsv": b"query-id\tcorpus-id\tscore\n" for name in _BEIR_SIDES.values()
    }

    def lines(self, side: str, row: Row) -> Iterator[Line]:
        """Yield the query, the document and the score of a judged pair for its split."""
        query, doc = row["topic"], row["doc"]
        yield from self._once("queries.jsonl", query, {"_id": query, "text": row["question"]})
        document = {"_id": doc, "title": row["source"], "text": row["text"]}
        yield from self._once("corpus.jsonl", doc, document)
        if row["relevance"] is not None:
            score = f"{query}\t{doc}\t{row['relevance']}\n"
            yield f"qrels/{_BEIR_SIDES[side]}.tsv", score.encode()


LAYOUTS: dict[str, type[Layout]] = {
    "splits": SplitsLayout,
    "trec": TrecLayout,
    "beir": BeirLayout,
}
"""Every layout by the name that ``formats.toml`` uses."""
