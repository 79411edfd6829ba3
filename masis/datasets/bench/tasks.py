"""The sets that can be measured: how each is recognised, and how its rows become claims with evidence and a label.

HAGRID, SummEdits, WiCE and ExpertQA are read in the form they are published or exchanged in; nothing of them is part of
this project. Our own cases come with gold labels (`data/README.md`). A further set is one more reading and one more
`Task`.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from masis.datasets.bench.rows import BenchRow
from masis.schema.case import Evidence
from masis.steps.citations import audit_citations

Row = Mapping[str, Any]
_MARKER = re.compile(r"\s?\[\d{1,3}(?:\s?(?:,|;|-|–|and)\s?\d{1,3})*\]")
_REFERENCE = re.compile(r"\s*\[(\d+)\]\s*")
_BULLET = re.compile(r"\s*(?:[-*•–]|\d{1,2}[.)])\s+")


class Task(NamedTuple):
    """A kind of file: its name, how a row of it is known, how a row is read, and what its positive class means."""

    name: str
    recognises: Callable[[Row], bool]
    rows: Callable[[Row], Iterable[BenchRow]]
    positive: str


def hagrid_rows(row: Row) -> Iterable[BenchRow]:
    """One claim with the references it cites; not attributable is positive."""
    evidence: list[tuple[str, str]] = []
    for text in row["references"]:
        found = _REFERENCE.match(text)
        evidence.append((found[1] if found else str(len(evidence) + 1), text[found.end() :] if found else text))
    plain = without_markers(row["claim"])
    yield BenchRow(
        id=str(row["id"]),
        claim=plain,
        evidence=tuple(evidence),
        positive=row["attribution_label"] != "attributable",
        keys=(row["question"], *(text for _, text in evidence)),
        cites_nothing=not evidence,
    )


def wice_rows(row: Row) -> Iterable[BenchRow]:
    """One sentence with the page it cites; anything but full support is positive, no support at all the strict
    reading.
    """
    document = "\n\n".join(row["evidence"])
    meta = row.get("meta", {})
    yield BenchRow(
        id=str(meta.get("id", "")),
        claim=row["claim"],
        evidence=(("document", document),),
        positive=row["label"] != "supported",
        keys=(f"title:{meta.get('claim_title', '')}", document),
        strict=row["label"] == "not_supported",
    )


def summedits_rows(row: Row) -> Iterable[BenchRow]:
    """A summary with its document; an inconsistent one is positive."""
    evidence = (("document", row["doc"]),)
    yield BenchRow(str(row["id"]), row["summary"], evidence, row["label"] == 0, (row["doc"],))


def expertqa_rows(row: Row) -> Iterable[BenchRow]:
    """The cited claims of an answer whose cited passages all have text; what an expert found less than complete is
    positive.
    """
    texts = {evidence["id"]: evidence.get("text", "") for evidence in row["evidence"]}
    keys = (row["query"], *(text for text in texts.values() if text))
    for number, claim in enumerate(row["labels"]["claims"]):
        cited = [name for name in dict.fromkeys(re.findall(r"\[(\d+)\]", claim["text"])) if name in texts]
        if claim["support"] in ("Complete", "Partial", "Incomplete") and cited and all(texts[name] for name in cited):
            yield BenchRow(
                id=f"{row['id']}#{number}",
                claim=without_markers(claim["text"]),
                evidence=tuple((name, texts[name]) for name in cited),
                positive=claim["support"] != "Complete",
                keys=keys,
            )


def demo_rows(row: Row) -> Iterable[BenchRow]:
    """The labelled claims of a case of ours, held against all its evidence; anything but supported is positive."""
    chunks = tuple((evidence["id"], evidence.get("text", "")) for evidence in row["evidence"])
    for number, claim in enumerate(row["labels"].get("claims", ())):
        yield BenchRow(
            id=f"{row['id']}#{number}",
            claim=_demo_claim(row, claim["text"]),
            evidence=chunks,
            positive=claim["verdict"] != "supported",
            keys=(row["id"],),
            planted=claim.get("planted"),
        )


def _demo_claim(row: Row, text: str) -> str:
    # Markers come in many forms in our cases: the citation engine knows where they are.
    answer = row.get("answer") or ""
    start = answer.find(text)
    if start < 0:
        return without_markers(text)
    evidence = [Evidence(id=chunk["id"], text=chunk.get("text", "")) for chunk in row["evidence"]]
    spans = {(found.marker_start, found.marker_end) for found in audit_citations(answer, evidence).citations}
    for begin, end in sorted(spans, reverse=True):
        if start <= begin and end <= start + len(text):
            text = text[: begin - start] + text[end - start :]
    bullet = _BULLET.match(text)
    return text[bullet.end() if bullet else 0 :].strip()


def without_markers(text: str) -> str:
    """The text without its numeric citation markers."""
    return _MARKER.sub("", text).strip()


def _has(*keys: str) -> Callable[[Row], bool]:
    return lambda row: all(key in row for key in keys)


def _is_expertqa(row: Row) -> bool:
    return _labelled(row, "cite_worthy")


def _is_ours(row: Row) -> bool:
    labels = row.get("labels") or {}
    return "evidence" in row and isinstance(labels, Mapping) and ("clean" in labels or _labelled(row, "verdict"))


def _labelled(row: Row, key: str) -> bool:
    labels = row.get("labels")
    claims = labels.get("claims") if isinstance(labels, Mapping) else None
    return "evidence" in row and bool(claims) and isinstance(claims, list) and key in claims[0]


TASKS: tuple[Task, ...] = (
    Task(
        "HAGRID",
        _has("response", "claim", "references", "attribution_label"),
        hagrid_rows,
        "not attributable to what it cites",
    ),
    Task("WiCE", _has("claim", "evidence", "supporting_sentences", "label"), wice_rows, "not supported in full"),
    Task("SummEdits", _has("doc", "summary", "label"), summedits_rows, "not consistent with the document"),
    Task("ExpertQA", _is_expertqa, expertqa_rows, "support less than complete"),
    Task("Demo gold", _is_ours, demo_rows, "not supported"),
)
