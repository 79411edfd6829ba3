"""The sets that can be measured: how each is recognised, and how its rows become claims with evidence and a label.

HAGRID, SummEdits, WiCE and ExpertQA are read in the form they are published in or exchanged in; nothing of them is part of
this project. Our own cases come with gold labels (`data/README.md`).
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from masis.datasets.bench.rows import BenchRow

_MARKER = re.compile(r"\s?\[(?:\d{1,3}(?:\s?(?:,|;|-|–|and)\s?)?)+\]")
_REFERENCE = re.compile(r"^\s*\[(\d+)\]\s*")


class Task(NamedTuple):
    """A kind of file: its name, the keys its rows show, and the reading of its rows."""

    name: str
    keys: frozenset[str]
    rows: Callable[[Mapping[str, Any]], Iterable[BenchRow]]
    positive: str


def _hagrid(row: Mapping[str, Any]) -> Iterable[BenchRow]:
    evidence = []
    for text in row["references"]:
        found = _REFERENCE.match(text)
        evidence.append((found[1] if found else str(len(evidence) + 1), text[found.end() :] if found else text))
    yield BenchRow(
        row["id"], without_markers(row["claim"]), tuple(evidence), row["attribution_label"] != "attributable",
        (row["question"], *(text for _, text in evidence)),
    )  # fmt: skip


def _wice(row: Mapping[str, Any]) -> Iterable[BenchRow]:
    document = "\n\n".join(row["evidence"])
    meta = row.get("meta", {})
    yield BenchRow(
        str(meta.get("id", "")), row["claim"], (("document", document),), row["label"] != "supported",
        (f"title:{meta.get('claim_title', '')}", document), row["label"] == "not_supported",
    )  # fmt: skip


def _summedits(row: Mapping[str, Any]) -> Iterable[BenchRow]:
    yield BenchRow(row["id"], row["summary"], (("document", row["doc"]),), row["label"] == 0, (row["doc"],))


def _expertqa(row: Mapping[str, Any]) -> Iterable[BenchRow]:
    texts = {evidence["id"]: evidence.get("text", "") for evidence in row["evidence"]}
    for number, claim in enumerate(row["labels"]["claims"]):
        cited = [name for name in dict.fromkeys(re.findall(r"\[(\d+)\]", claim["text"])) if name in texts]
        if claim["support"] in ("Complete", "Partial", "Incomplete") and cited and all(texts[name] for name in cited):
            evidence = tuple((name, texts[name]) for name in cited)
            keys = (row["query"], *(text for text in texts.values() if text))
            yield BenchRow(
                f"{row['id']}#{number}", without_markers(claim["text"]), evidence, claim["support"] != "Complete", keys
            )


def without_markers(text: str) -> str:
    """The text without its numeric citation markers."""
    return _MARKER.sub("", text).strip()


TASKS: tuple[Task, ...] = (
    Task(
        "HAGRID",
        frozenset({"response", "claim", "references", "attribution_label"}),
        _hagrid,
        "not attributable to its references",
    ),
    Task(
        "WiCE",
        frozenset({"claim", "evidence", "supporting_sentences", "label", "meta"}),
        _wice,
        "not supported in full",
    ),
    Task("SummEdits", frozenset({"doc", "summary", "label", "edit_types"}), _summedits, "not consistent"),
    Task("ExpertQA", frozenset({"query", "answer", "evidence", "labels"}), _expertqa, "support not complete"),
)
