"""Compares the audit's verdicts on answers, claims and references with those of people.

``answer_rows`` returns one row per decided answer, ``compare`` computes the figures of any rows,
and ``miss_rate`` estimates the share of faulty answers among those that pass without a person.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from masis.audit.measures.statistics import exact_bounds
from masis.schema.rules import FLAGS
from masis.schema.trust import FaultScore
from masis.store.reviews.outcomes import CaseOutcome
from masis.trust.agreement import AgreementEstimate, UnitCounts, codes, cohen_kappa, share
from masis.trust.score import (
    Reliability,
    calibration_error,
    error_floor,
    probabilities,
    reliability,
)

if TYPE_CHECKING:
    import pandas as pd  # the functions that need it import it; see agreement.codes

FAULTY_STATES, SETTLED = (
    ("rejected", "overridden"),
    (
        "approved",
        "overridden",
        "rejected",
        "escalated",
    ),
)
FORM_ONLY = frozenset({"unclear", "uncited"})
"""Reason codes of an override that don't concern the facts (``masis/services/decision_rules.py``).

The answer then counts as right. Any other reason, including the reviewer's own words, counts as a
factual one.
"""

AUDIT_VERDICTS = ("must_look", "not_certified", "nothing found")
"""The audit's verdicts on an answer: something is wrong, not confirmed, or nothing found."""


def frame_of(columns: Mapping[str, Sequence[Any]]) -> pd.DataFrame:
    """Return columns of the store as a table of plain objects.

    pandas' own text type would be inferred for each column, which takes longer than the comparison.
    """
    import pandas as pd

    return pd.DataFrame({name: pd.Series(column, dtype=object) for name, column in columns.items()})


FLAGGING_ISSUES = frozenset(
    {"hallucination", *(name for name, flag in FLAGS.items() if flag.says_wrong)}
)
"""Flags of the original answer that say something is wrong.

People judge the original answer, while the tier of a run is about the chosen one, in which a
revision may have corrected the issue.
"""


def audit_verdict(flags: Iterable[str], tier: str | None) -> str:
    """Return the audit's verdict on an answer, by the flags and the tier of its run.

    Args:
        flags: The flags of the original answer.
        tier: The tier of the reasons for review; None if there are none.

    Returns:
        One of ``AUDIT_VERDICTS``.

    """
    if not FLAGGING_ISSUES.isdisjoint(flags):
        return AUDIT_VERDICTS[0]
    return AUDIT_VERDICTS[2] if tier is None else tier


def _rows_with_any(lists: pd.Series[Any], names: frozenset[str]) -> NDArray[np.bool_]:
    """Return a mask of the JSON lists that contain one of the names.

    There are few distinct texts, so each one is parsed only once.
    """
    texts, place = np.unique(lists.to_numpy(dtype=str), return_inverse=True)
    return np.array([not names.isdisjoint(json.loads(text)) for text in texts], dtype=bool)[place]


def truth_of(state: str, reason_code: str | None) -> bool | None:
    """Return whether a settled answer is faulty, or None while it is escalated or not settled."""
    if state == "overridden":
        return reason_code not in FORM_ONLY
    return {"rejected": True, "approved": False}.get(state)


def answer_rows(decided: pd.DataFrame, score: FaultScore) -> pd.DataFrame:
    """Return one row for each audited answer that a decision settles.

    Args:
        decided: Decision columns of the store.
        score: The score that ``probability`` is computed with.

    Returns:
        The rows. ``faulty`` is None while a case is escalated, ``blind`` says that no decision on
        the case saw the machine's verdict, and ``original`` that the decision is about the audited
        answer.

    """
    import pandas as pd

    cases = codes(decided["case_id"].to_numpy())
    # A case is blind only if none of its decisions saw the audit's verdict.
    seen = np.bincount(cases, ~decided["blind"].to_numpy(dtype=bool)) > 0
    frame = decided.assign(blind=~seen[cases])
    settled = frame[
        frame["settles"].astype(bool) & frame["state"].isin(SETTLED) & frame["auditor"].notna()
    ]
    coded = zip(settled["state"], settled["reason_code"], strict=True)
    truths = [truth_of(state, code) for state, code in coded]
    return _judge_frame(
        settled.assign(
            faulty=pd.Series(truths, index=settled.index, dtype=object), source="decision"
        ),
        score,
    )


def gold_answer_rows(labelled: pd.DataFrame, score: FaultScore) -> pd.DataFrame:
    """Return one row for each audited answer with gold or imported labels.

    ``labels.clean`` says whether the answer is right. Without it, the labels of its claims do.
    """
    import pandas as pd

    truths = pd.Series([_gold_truth(json.loads(text)) for text in labelled["labels"]], dtype=object)
    frame = labelled.assign(faulty=truths, source="gold", blind=True, simulated=False)
    return _judge_frame(frame[frame["faulty"].notna()], score)


def _judge_frame(frame: pd.DataFrame, score: FaultScore) -> pd.DataFrame:
    flagged = _rows_with_any(frame["flags"], FLAGGING_ISSUES)
    tier = (
        frame["tier"]
        .where(frame["tier"].notna(), AUDIT_VERDICTS[2])
        .where(~flagged, AUDIT_VERDICTS[0])
    )
    columns = {
        name: frame[name].to_numpy()
        for name in ("likely", "confidence", "quality", "disagreement", "uncited")
    }
    columns |= {"invalid": frame["invalid"].to_numpy(), "tier": frame["tier"].to_numpy()}
    cluster = codes(frame["question"].to_numpy())
    return frame.assign(
        found=tier, cluster=cluster, probability=probabilities(score, columns)
    ).reset_index(drop=True)


def _gold_truth(labels: Any) -> bool | None:
    if not isinstance(labels, dict):
        return None
    if isinstance(labels.get("clean"), bool):
        return not labels["clean"]
    claims = [
        _claim_truth(claim) for claim in labels.get("claims") or () if isinstance(claim, dict)
    ]
    known = [truth for truth in claims if truth is not None]
    return any(known) if known else None


def _claim_truth(label: Mapping[str, Any]) -> bool | None:
    """Return whether people found a claim unsupported, or None if they didn't say."""
    verdict = label.get("verdict") or label.get("support") or label.get("label")
    if not isinstance(verdict, str) or verdict.casefold() in (
        "n/a",
        "unverifiable",
        "unscored",
        "",
    ):
        return None
    return verdict.casefold() not in ("supported", "complete", "attributable")


# Figures


class Flag(NamedTuple):
    """A flag or reason, with the number of answers that have it, its precision and its recall."""

    name: str
    flagged: int
    precision: AgreementEstimate
    recall: AgreementEstimate


class MachineComparison(NamedTuple):
    """The audit compared with people on some answers or claims.

    ``confusion`` maps the audit's verdict to (faulty, right) counts. ``kappa`` compares "something
    is wrong" with "faulty". ``constant`` is the accuracy of always giving the more frequent
    verdict, to compare ``accuracy`` with. ``error_floor`` is the calibration error that a perfect
    score would have by chance with so few answers (95th percentile).
    """

    n: int
    faulty: AgreementEstimate
    confusion: dict[str, tuple[int, int]]
    precision: AgreementEstimate
    recall: AgreementEstimate
    kappa: AgreementEstimate
    accuracy: AgreementEstimate
    constant: float | None
    flags: tuple[Flag, ...]
    curve: tuple[Reliability, ...]
    calibration: float | None
    error_floor: float | None


def compare(frame: pd.DataFrame, *, flagged: str = "must_look") -> MachineComparison:
    """Compare the audit's verdicts with people's over rows whose ``faulty`` is known.

    Args:
        frame: Rows with ``found`` (the audit's verdict), ``faulty`` and ``question``, and
            optionally ``flags`` and ``probability``.
        flagged: The value of ``found`` that says something is wrong.

    """
    frame = frame[frame["faulty"].notna()]
    truth = frame["faulty"].to_numpy(dtype=bool)
    is_flagged = (frame["found"] == flagged).to_numpy()
    questions = codes((frame["cluster"] if "cluster" in frame else frame["question"]).to_numpy())
    # The cell of an answer in the 2 x 2 table of the audit's verdict (row) and people's (column).
    cells = is_flagged.astype(np.int64) * 2 + truth
    counted = UnitCounts.of(
        np.column_stack([is_flagged, truth]).astype(np.int64), cells, questions, 4
    )
    names = list(
        dict.fromkeys(
            [*(name for name in AUDIT_VERDICTS if name in set(frame["found"])), *frame["found"]]
        )
    )
    predicted = (
        frame["probability"].to_numpy(dtype=float) if "probability" in frame else np.zeros(0)
    )
    calibrated = len(predicted) > 0
    return MachineComparison(
        n=len(frame),
        faulty=share(truth, questions),
        confusion={
            name: _count_faulty_and_right(truth[(frame["found"] == name).to_numpy()])
            for name in names
        },
        precision=share(truth[is_flagged], questions[is_flagged]),
        # If only flagged answers were checked, every fault found is a flagged one, so the recall
        # would be 1 whatever the audit misses.
        recall=(
            AgreementEstimate(None, why="unknown: only flagged answers were checked")
            if len(truth) and is_flagged.all()
            else share(is_flagged[truth], questions[truth])
        ),
        kappa=counted.estimate(lambda table: cohen_kappa(table.reshape(*table.shape[:-1], 2, 2))),
        accuracy=share(is_flagged == truth, questions),
        constant=max(float(truth.mean()), 1 - float(truth.mean())) if len(truth) else None,
        flags=tuple(_flags(frame, truth, questions)),
        curve=tuple(reliability(truth, predicted)) if calibrated else (),
        calibration=calibration_error(truth, predicted) if calibrated else None,
        error_floor=error_floor(predicted) if calibrated else None,
    )


def _count_faulty_and_right(truth: np.ndarray[Any, Any]) -> tuple[int, int]:
    return int(truth.sum()), int((~truth).sum())


def _flags(frame: pd.DataFrame, truth: Any, questions: Any) -> Iterator[Flag]:
    """Yield each flag and reason by name with its figures.

    A run often has a flag as a reason too; an answer with either counts once.
    """
    columns = [column for column in ("reasons", "flags") if column in frame]
    has: dict[str, NDArray[np.bool_]] = {}
    for column in columns:
        texts, place = np.unique(frame[column].to_numpy(dtype=str), return_inverse=True)
        lists = [set(json.loads(text)) for text in texts]
        for name in sorted(set().union(*lists)):
            listed = np.array([name in names for names in lists])[place]
            has[name] = has[name] | listed if name in has else listed
    for name, flagged in has.items():
        yield Flag(
            name,
            int(flagged.sum()),
            share(truth[flagged], questions[flagged]),
            share(flagged[truth], questions[truth]),
        )


def breakdown(frame: pd.DataFrame, by: str) -> dict[str, MachineComparison]:
    """Compare separately for each value of a column, such as auditor, dataset or field.

    The values with the most answers are first. ``month`` groups by the month of ``at``.
    """
    values = (
        frame["at"].str.slice(0, 7) if by == "month" else frame[by].fillna("(none)").astype(str)
    )
    plain = frame[["found", "faulty", "cluster", "question"]]
    order = sorted(values.unique()) if by == "month" else list(values.value_counts().index[:20])
    return {name: compare(plain[values == name]) for name in order}


# Claims and references


def part_rows(labelled: Iterable[CaseOutcome]) -> pd.DataFrame:
    """Return the claims and references that people labelled, each with the audit's verdict.

    Labels come with the case (gold, imported) or from a decision. A claim is matched with the
    audit's claim that shares the most characters with it, a reference with the same reference of
    the same sentence. Parts without a verdict of the audit are left out.
    """
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for outcome in labelled:
        judgement = outcome.current
        if judgement is None or judgement.iteration is None:
            continue
        # Gold labels weren't influenced by the audit, so they count as blind.
        gold = outcome.case.get("labels")
        about = {"case_id": str(outcome.case["id"]), "question": str(outcome.case.get("query", ""))}
        gold_labels = _gold_items(gold if isinstance(gold, dict) else {}, outcome)
        labels = [("gold", True, judgement.iteration, *label) for label in gold_labels]
        for judged in outcome.judgements:
            decision = judged.entry.decision if judged.entry else None
            if decision is None or judged.iteration is None:
                continue
            for label in decision.labels:
                truth = _claim_truth({"label": label.label})
                if (
                    label.target in ("claim", "reference")
                    and label.start is not None
                    and truth is not None
                ):
                    place = label.target, label.start, label.end or 0, truth
                    blind = not decision.machine_shown
                    labels.append(("decision", blind, judged.iteration, *place))
        for source, blind, iteration, level, start, end, faulty in labels:
            if verdict := _verdict_at(level, start, end, iteration):
                verdicts = {
                    "source": source,
                    "blind": blind,
                    "level": level,
                    "found": verdict,
                    "faulty": faulty,
                }
                rows.append(about | verdicts)
    names = ["case_id", "question", "source", "blind", "level", "found", "faulty"]
    return pd.DataFrame(rows, columns=names)


def _gold_items(
    labels: Mapping[str, Any], outcome: CaseOutcome
) -> Iterator[tuple[str, int, int, bool]]:
    answer = str(outcome.case.get("answer") or "")
    for claim in labels.get("claims") or ():
        truth, start = _claim_truth(claim), answer.find(str(claim.get("text") or "\x00"))
        if truth is not None and start >= 0:
            yield "claim", start, start + len(claim["text"]), truth
    for citation in labels.get("citations") or ():
        sentence = str(citation.get("sentence") or "\x00")
        start = answer.find(sentence)
        inside = sentence.find(str(citation.get("text") or "\x00"))
        if start >= 0 and inside >= 0:
            at = start + inside
            yield (
                "reference",
                at,
                at + len(citation["text"]),
                citation.get("status") in ("invalid", "misattributed"),
            )


def _verdict_at(level: str, start: int, end: int, iteration: Any) -> str:
    """Return the audit's verdict on the claim or reference that overlaps a span most, or ""."""
    if level == "claim":
        placed = [
            (check.verdict, check.claim)
            for check in iteration.claims
            if check.claim.start is not None
        ]
    else:
        flagged = [
            issue
            for issue in iteration.issues
            if issue.rule == "misattributed_reference" and issue.start is not None
        ]
        placed = []
        for citation in iteration.citation_audit.citations:
            misattributed = any(
                citation.start < issue.end and issue.start < citation.end for issue in flagged
            )
            placed.append(("misattributed" if misattributed else citation.status, citation))
    overlaps = [(min(end, part.end) - max(start, part.start), verdict) for verdict, part in placed]
    most, verdict = max(overlaps, key=lambda overlap: overlap[0], default=(0, ""))
    return str(verdict) if most > 0 else ""


FLAGGED_VERDICTS = {
    "claim": ("contradicted", "unsupported", "partial"),
    "reference": ("invalid", "misattributed"),
}
"""Verdicts that say something is wrong."""


def compare_parts(frame: pd.DataFrame, level: str) -> MachineComparison:
    """Compare the verdicts on claims or references with people's.

    Each verdict is also listed as a flag, with its precision and recall.
    """
    rows = frame[frame["level"] == level]
    flagged = rows["found"].isin(FLAGGED_VERDICTS[level])
    verdicts = rows["found"].map(lambda verdict: json.dumps([verdict]))
    comparison = compare(
        rows.assign(found=flagged.map({True: "flagged", False: "not flagged"}), flags=verdicts),
        flagged="flagged",
    )
    truth = rows["faulty"].to_numpy(dtype=bool)
    by_verdict = {
        str(name): _count_faulty_and_right(truth[(rows["found"] == name).to_numpy()])
        for name in rows["found"].unique()
    }
    return comparison._replace(confusion=by_verdict)


# The miss rate


class Stratum(NamedTuple):
    """Answers that passed without a person and had the same probability of a spot check."""

    name: str
    passed: int
    decided: int
    faulty: int


def miss_rate(strata: Sequence[Stratum]) -> AgreementEstimate:
    """Return the share of faulty answers among those that pass, weighted by stratum.

    A stratum without a decided spot check is left out, and ``why`` states its share of the answers.
    The interval is exact for the number of independent draws that would have the same variance.
    """
    known = [stratum for stratum in strata if stratum.decided]
    passed = sum(stratum.passed for stratum in strata)
    if not known:
        return AgreementEstimate(None, why="no spot check is decided")
    total = sum(stratum.passed for stratum in known)
    value = variance = plain = 0.0
    for stratum in known:
        weight, rate = stratum.passed / total, stratum.faulty / stratum.decided
        # Without the added half, a stratum without any fault so far would have a variance of 0.
        softened = (stratum.faulty + 0.5) / (stratum.decided + 1)
        value += weight * rate
        variance += weight**2 * softened * (1 - softened) / stratum.decided
        plain += weight * softened
    n = sum(stratum.decided for stratum in known)
    effective = min(float(n), plain * (1 - plain) / variance) if len(known) > 1 else float(n)
    left = 1 - total / passed if passed else 0.0
    why = (
        f"leaves out {left:.0%} of what passed, in strata without a decision"
        if left > 0.005
        else ""
    )
    return AgreementEstimate(value, *exact_bounds(value * effective, effective), n, why)


def draws_for_width(rate: AgreementEstimate, width: float) -> int | None:
    """Return how many more spot checks would narrow the interval to this width at the same rate.

    It's None before there is an estimate.
    """
    if (value := rate.value) is None:
        return None
    # The width falls with the number of checks, so a binary search finds the least number.
    return bisect_left(
        range(1_000_000), True, key=lambda more: _interval_width(value, rate.n + more) <= width
    )


def _interval_width(rate: float, n: int) -> float:
    low, high = exact_bounds(math.floor(rate * n + 0.5), n)
    return high - low
