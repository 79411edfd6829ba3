"""The citation engine measured: fabricated references in our own cases, exemptions on ExpertQA's uncited claims."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from masis.datasets.bench.metrics import Judged
from masis.schema.audit import Sentence
from masis.schema.case import Evidence
from masis.steps.citations import audit_citations

Row = Mapping[str, Any]


def fabricated(cases: Sequence[Row]) -> list[Judged]:
    """Each reference of the gold labels, and each the engine flags beyond them: fabricated, and so called?"""
    found: list[Judged] = []
    for case in cases:
        engine = Counter(audit_citations(case.get("answer") or "", _evidence(case)).invalid_citations)
        for label in case["labels"].get("citations", ()):
            flagged = engine[label["reference"]] > 0
            engine[label["reference"]] -= flagged
            found.append(Judged(label["status"] == "invalid", flagged, float(flagged), case["id"]))
        found += [Judged(False, True, 1.0, case["id"])] * sum(engine.values())
    return found


def exemptions(cases: Sequence[Row]) -> dict[str, int]:
    """Of the claims without a marker: how many experts found (not) worth a citation, and how many of them are
    exempt.
    """
    counts = {"not worth citing": 0, "of these exempt": 0, "worth citing": 0, "of these not exempt": 0}
    for case in cases:
        sentences = audit_citations(case["answer"], _evidence(case)).sentences
        for claim in case["labels"]["claims"]:
            status = _status(case["answer"], claim["text"], sentences)
            if claim.get("cite_worthy") == "No" and status is not None:
                counts["not worth citing"] += 1
                counts["of these exempt"] += status == "exempt"
            elif claim.get("cite_worthy") == "Yes" and status is not None:
                counts["worth citing"] += 1
                counts["of these not exempt"] += status != "exempt"
    return counts


def _evidence(case: Row) -> list[Evidence]:
    return [Evidence(id=chunk["id"], text=chunk.get("text", "")) for chunk in case["evidence"]]


def _status(answer: str, claim: str, sentences: Sequence[Sentence]) -> str | None:
    """The status of the sentence that holds most of an uncited claim; None for a cited one or one not found."""
    start = answer.find(claim)
    if start < 0:
        return None
    end = start + len(claim)
    holder = max(sentences, key=lambda sentence: min(end, sentence.end) - max(start, sentence.start), default=None)
    if holder is None or min(end, holder.end) <= max(start, holder.start) or holder.status == "cited":
        return None
    return holder.status
