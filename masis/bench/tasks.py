"""The sets that can be measured, and the functions that read their rows as labeled claims.

HAGRID, SummEdits, WiCE, ExpertQA and pairs of premise and hypothesis are read as they are
published; none of their data is part of this project. The demo cases have gold labels
(`data/README.md`). A further set needs one more reader and one more `Task`.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from pydantic import ValidationError

from masis.api.audits import run_audit
from masis.audit.citations import audit_citations
from masis.audit.markers import find_markers, index_of, without_markers
from masis.audit.sentences import split_sentences
from masis.bench.metrics import Prediction
from masis.bench.rows import BenchRow
from masis.errors import InputError
from masis.offline.matching.evidence_index import ClaimAssessment, EvidenceIndex
from masis.schema.audit import Sentence
from masis.schema.case import Case, Evidence
from masis.schema.run import Run
from masis.settings import Settings

# Whole audits to measure: new offline ones, or a file of runs (`masis audit --out`).


def audit_offline(cases: Sequence[Mapping[str, Any]]) -> list[Run]:
    """Audit each case that has an answer, without a model and with the default settings."""
    settings = Settings()
    return [run_audit(Case.model_validate(case), settings) for case in cases if case.get("answer")]


def is_run(row: Mapping[str, Any]) -> bool:
    """Return whether a row is a run."""
    return {"case_id", "iterations", "termination_reason"} <= row.keys()


def read_runs(rows: Iterable[tuple[str, int, Mapping[str, Any]]]) -> list[Run]:
    """Return the runs of a file; the last one counts if a case has several.

    Raises:
        InputError: A row isn't a run; the error names file and line.

    """
    runs: dict[str, Run] = {}
    for file, line, row in rows:
        try:
            run = Run.model_validate(row)
        except ValidationError as error:
            first = error.errors()[0]
            raise InputError(
                f"is not a run of this version ({first['msg']})",
                hint="Give a file that masis audit --out wrote.",
                file=file,
                line=line,
                field=".".join(str(part) for part in first["loc"]),
            ) from error
        runs[run.case_id] = run
    return list(runs.values())


# Measures the citation engine: fabricated references in our own cases, and exemptions on ExpertQA's
# uncited claims.

Row = Mapping[str, Any]


def predict_fabricated(cases: Sequence[Row]) -> list[Prediction]:
    """Return for each labeled or flagged reference a prediction of whether it is fabricated."""
    predictions: list[Prediction] = []
    for case in cases:
        flagged_counts = Counter(
            audit_citations(case.get("answer") or "", _row_evidence(case)).invalid_citations
        )
        for label in case["labels"].get("citations", ()):
            is_flagged = flagged_counts[label["reference"]] > 0
            flagged_counts[label["reference"]] -= is_flagged
            predictions.append(
                Prediction(label["status"] == "invalid", is_flagged, float(is_flagged), case["id"])
            )
        predictions += [Prediction(False, True, 1.0, case["id"])] * sum(flagged_counts.values())
    return predictions


def count_exemptions(cases: Sequence[Row]) -> dict[str, int]:
    """Count the uncited claims that experts found worth a citation or not, and the exempt ones of
    each.
    """
    counts = {
        "not worth citing": 0,
        "of these exempt": 0,
        "worth citing": 0,
        "of these not exempt": 0,
    }
    for case in cases:
        sentences = audit_citations(case["answer"], _row_evidence(case)).sentences
        for claim in case["labels"]["claims"]:
            status = _claim_status(case["answer"], claim["text"], sentences)
            if claim.get("cite_worthy") == "No" and status is not None:
                counts["not worth citing"] += 1
                counts["of these exempt"] += status == "exempt"
            elif claim.get("cite_worthy") == "Yes" and status is not None:
                counts["worth citing"] += 1
                counts["of these not exempt"] += status != "exempt"
    return counts


def _row_evidence(case: Row) -> list[Evidence]:
    return [Evidence(id=chunk["id"], text=chunk.get("text", "")) for chunk in case["evidence"]]


def _claim_status(answer: str, claim: str, sentences: Sequence[Sentence]) -> str | None:
    """Return the status of the sentence with most of an uncited claim; None if it is cited or not
    found.
    """
    start = answer.find(claim)
    if start < 0:
        return None
    end = start + len(claim)
    sentence_of_claim = max(
        sentences,
        key=lambda sentence: min(end, sentence.end) - max(start, sentence.start),
        default=None,
    )
    if (
        sentence_of_claim is None
        or min(end, sentence_of_claim.end) <= max(start, sentence_of_claim.start)
        or sentence_of_claim.status == "cited"
    ):
        return None
    return sentence_of_claim.status


# The offline auditor, and three baselines that every auditor must beat.

Judgement = tuple[bool | None, float]
"""Whether the claim is unsupported (None for an abstention), and the strength of that, 0 to 1."""
_WORD = re.compile(r"\w{3,}")


class AssessedRow(NamedTuple):
    """A row with its group and the auditor's assessment."""

    row: BenchRow
    group: str
    assessment: ClaimAssessment


def assess_rows(rows: Sequence[tuple[BenchRow, str]]) -> list[AssessedRow]:
    """Return the rows with the auditor's assessment; evidence that consecutive rows share is
    indexed once.
    """
    assessed, evidence, index = [], None, None
    for row, group in rows:
        if index is None or row.evidence != evidence:
            evidence, index = row.evidence, EvidenceIndex(row.evidence)
        assessed.append(AssessedRow(row, group, index.assess(row.claim)))
    return assessed


def judge_by_auditor(assessed: AssessedRow, *, use_citation_rule: bool = True) -> Judgement:
    """Return positive if the auditor flags the claim, ranked by the lack of support.

    Precision then says how often a flag is right. It abstains if there is nothing to check against.
    A claim that cites nothing isn't attributed; with `use_citation_rule` that is a decision.
    """
    if assessed.row.cites_nothing and use_citation_rule:
        return True, 1.0
    if assessed.assessment.support is None:
        return None, 0.5
    return _DECIDED.get(assessed.assessment.verdict) == "accused", 1.0 - assessed.assessment.support


def count_decisions(rows: Sequence[AssessedRow]) -> dict[str, int]:
    """Count the true and faulty claims that the verdicts confirm, flag and leave open."""
    counts = dict.fromkeys(
        (f"{truth} claims {decision}" for truth in ("true", "faulty") for decision in _DECISIONS), 0
    )
    for assessed in rows:
        decision = _DECIDED.get(assessed.assessment.verdict, "not confirmed")
        counts[f"{'faulty' if assessed.row.positive else 'true'} claims {decision}"] += 1
    return counts


_DECISIONS = ("confirmed", "accused", "not confirmed")
_DECIDED = {"supported": "confirmed", "contradicted": "accused", "unsupported": "accused"}


def judge_contradictions(assessed: AssessedRow) -> Judgement:
    """Predict contradicted claims, ranked by the strength of the contradiction, then by lack of
    support.
    """
    assessment = assessed.assessment
    if assessment.support is None:
        return None, 0.5
    strongest = assessment.signals[0].strength if assessment.signals else 0.0
    return assessment.verdict == "contradicted", 0.9 * strongest + 0.1 * (1 - assessment.support)


def judge_always_positive(_: AssessedRow) -> Judgement:
    """Return the baseline that always says "not supported"."""
    return True, 0.5


def word_overlap(row: BenchRow) -> float:
    """Return the share of the claim's words that aren't in the evidence, 0 to 1."""
    words = _row_words(row.claim)
    evidence = _row_words(" ".join(text for _, text in row.evidence))
    return len(words - evidence) / len(words) if words else 1.0


def word_overlap_in_window(row: BenchRow) -> float:
    """Return the share of the claim's words that aren't in the best three consecutive sentences, 0
    to 1.
    """
    claim_words, lowest_share = _row_words(row.claim), 1.0
    for _, text in row.evidence:
        sentences = [_row_words(text[span.start : span.end]) for span in split_sentences(text)]
        for first in range(len(sentences)):
            window_words: set[str] = set().union(*sentences[first : first + _WINDOW])
            lowest_share = min(
                lowest_share,
                len(claim_words - window_words) / len(claim_words) if claim_words else 1.0,
            )
    return lowest_share


def _row_words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


_WINDOW = 3
Overlap = Callable[[BenchRow], float]
OVERLAPS: dict[str, Overlap] = {
    "word overlap": word_overlap,
    "word overlap in a window": word_overlap_in_window,
}


def overlap_threshold(
    rows: Sequence[BenchRow], positive: Callable[[BenchRow], bool], share: Overlap = word_overlap
) -> float:
    """Return the threshold at which word overlap best separates these rows, by balanced accuracy.

    The baseline is fitted to each set separately, the auditor isn't.
    """
    scored = [(share(row), positive(row)) for row in rows]
    positives = sum(truth for _, truth in scored) or 1
    negatives = len(scored) - positives or 1

    def quality(threshold: float) -> float:
        hits = sum(truth and score >= threshold for score, truth in scored) / positives
        correct_rejections = (
            sum(not truth and score < threshold for score, truth in scored) / negatives
        )
        return hits + correct_rejections

    return max((step / 50 for step in range(1, 50)), key=quality)


# "[1] text of the reference".
_REFERENCE = re.compile(r"\s*\[(\d+)\]\s*")
# "- " or "2. " at the beginning of a claim.
_BULLET = re.compile(r"\s*(?:[-*•–]|\d{1,2}[.)])\s+")


class Task(NamedTuple):
    """A kind of file: its name, functions that recognize and read its rows, and the meaning of a
    positive row.
    """

    name: str
    recognizes: Callable[[Row], bool]
    rows: Callable[[Row], Iterable[BenchRow]]
    positive: str


def hagrid_rows(row: Row) -> Iterable[BenchRow]:
    """Yield one claim with the references it cites; "not attributable" is positive."""
    evidence: list[tuple[str, str]] = []
    for text in row["references"]:
        match = _REFERENCE.match(text)
        evidence.append(
            (match[1] if match else str(len(evidence) + 1), text[match.end() :] if match else text)
        )
    index = index_of(tuple(name for name, _ in evidence), ())
    claim_text = without_markers(row["claim"], index).strip()
    yield BenchRow(
        id=str(row["id"]),
        claim=claim_text,
        evidence=tuple(evidence),
        positive=row["attribution_label"] != "attributable",
        keys=(row["question"], *(text for _, text in evidence)),
        cites_nothing=not evidence,
    )


def wice_rows(row: Row) -> Iterable[BenchRow]:
    """Yield one sentence with the page it cites; anything but full support is positive.

    In the strict reading, only "not supported" is positive.
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
    """Yield a summary with its document; an inconsistent one is positive."""
    evidence = (("document", row["doc"]),)
    yield BenchRow(str(row["id"]), row["summary"], evidence, row["label"] == 0, (row["doc"],))


def expertqa_rows(row: Row) -> Iterable[BenchRow]:
    """Yield the cited claims of an answer if all cited passages have text.

    Support that an expert found less than complete is positive.
    """
    texts = {evidence["id"]: evidence.get("text", "") for evidence in row["evidence"]}
    index = index_of(tuple(texts), ())
    keys = (row["query"], *(text for text in texts.values() if text))
    for number, claim in enumerate(row["labels"]["claims"]):
        references = [
            reference
            for marker in find_markers(claim["text"], index)
            for reference in marker.references
        ]
        cited = [
            *dict.fromkeys(
                reference.evidence_id for reference in references if reference.evidence_id
            )
        ]
        if (
            claim["support"] in ("Complete", "Partial", "Incomplete")
            and cited
            and all(texts[name] for name in cited)
        ):
            yield BenchRow(
                id=f"{row['id']}#{number}",
                claim=without_markers(claim["text"], index).strip(),
                evidence=tuple((name, texts[name]) for name in cited),
                positive=claim["support"] != "Complete",
                keys=keys,
            )


def labeled_rows(row: Row) -> Iterable[BenchRow]:
    """Yield the labeled claims of a case with all its evidence; anything but supported is
    positive.

    The labels of our own cases are verdicts; others only say whether the evidence supports a claim.
    """
    chunks = tuple((evidence["id"], evidence.get("text", "")) for evidence in row["evidence"])
    for number, claim in enumerate(row["labels"].get("claims", ())):
        yield BenchRow(
            id=f"{row['id']}#{number}",
            claim=_labeled_claim(row, claim["text"]),
            evidence=chunks,
            positive=(
                claim["verdict"] != "supported" if "verdict" in claim else not claim["supported"]
            ),
            keys=(row["id"],),
            planted=claim.get("planted"),
        )


def pair_rows(row: Row) -> Iterable[BenchRow]:
    """Yield a pair of a premise and a hypothesis; anything but entailment (label 0) is positive."""
    yield BenchRow(
        id=hashlib.sha256(f"{row['premise']}\n{row['hypothesis']}".encode()).hexdigest()[:12],
        claim=row["hypothesis"],
        evidence=(("premise", row["premise"]),),
        positive=row["label"] != 0,
        keys=(row["premise"],),
    )


def _labeled_claim(row: Row, text: str) -> str:
    # Our cases have markers in many styles, and the citation engine finds all of them.
    answer = row.get("answer") or ""
    start = answer.find(text)
    if start < 0:
        return without_markers(text).strip()
    evidence = [Evidence(id=chunk["id"], text=chunk.get("text", "")) for chunk in row["evidence"]]
    spans = {
        (citation.marker_start, citation.marker_end)
        for citation in audit_citations(answer, evidence).citations
    }
    for marker_start, marker_end in sorted(spans, reverse=True):
        if start <= marker_start and marker_end <= start + len(text):
            text = text[: marker_start - start] + text[marker_end - start :]
    bullet = _BULLET.match(text)
    return text[bullet.end() if bullet else 0 :].strip()


def _has(*keys: str) -> Callable[[Row], bool]:
    return lambda row: all(key in row for key in keys)


def _is_ours(row: Row) -> bool:
    labels = row.get("labels") or {}
    return (
        "evidence" in row
        and isinstance(labels, Mapping)
        and ("clean" in labels or _has_claim_labels(row, "verdict"))
    )


def _has_claim_labels(row: Row, key: str) -> bool:
    labels = row.get("labels")
    claims = labels.get("claims") if isinstance(labels, Mapping) else None
    return "evidence" in row and bool(claims) and isinstance(claims, list) and key in claims[0]


EXPERTQA = Task(
    "ExpertQA",
    partial(_has_claim_labels, key="cite_worthy"),
    expertqa_rows,
    "support less than complete",
)
"""The uncited claims of this set also measure the exemptions of the citation engine."""

DEMO_GOLD = Task("Demo gold", _is_ours, labeled_rows, "not supported")
"""The labels of our own cases also name fabricated references and altered facts."""

TASKS: tuple[Task, ...] = (
    Task(
        "HAGRID",
        _has("response", "claim", "references", "attribution_label"),
        hagrid_rows,
        "not attributable to what it cites",
    ),
    Task(
        "WiCE",
        _has("claim", "evidence", "supporting_sentences", "label"),
        wice_rows,
        "not supported in full",
    ),
    Task(
        "SummEdits",
        _has("doc", "summary", "label"),
        summedits_rows,
        "not consistent with the document",
    ),
    EXPERTQA,
    Task("Pairs", _has("premise", "hypothesis", "label"), pair_rows, "not entailed"),
    DEMO_GOLD,
    Task(
        "Labeled cases",
        partial(_has_claim_labels, key="supported"),
        labeled_rows,
        "not supported",
    ),
)
