"""The audit compared with people: what it says of answers, claims and references beside what they
found.

``answers`` turns decisions and gold labels into one row an answer; ``compare`` makes the figures of
any rows, and ``missed`` estimates what passes without a person.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from masis.audit.measures.statistics import exact_bounds
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
"""Codes of the reasons of an override that say nothing against the facts
(``masis/services/decision_rules.py``): the answer counts as right. Any other reason, words of the
reviewer's own included, counts as a factual one."""

AUDIT_VERDICTS = ("must_look", "not_certified", "nothing found")
"""What the audit says of an answer: something is wrong, it could not be confirmed, or nothing was
found.
"""


def frame_of(columns: Mapping[str, Sequence[Any]]) -> pd.DataFrame:
    """Return columns of the store as a table of plain objects: recognising text takes longer than
    all that follows.
    """
    return pd.DataFrame({name: pd.Series(column, dtype=object) for name, column in columns.items()})


FLAGGING_ISSUES = frozenset(
    {"invalid_reference", "contradicted", "unsupported", "partial", "hallucination"}
)
"""Flags of the original answer that say something is wrong: people judge that answer, while the
tier of a run is about the chosen one, in which a revision may have put it right."""


def _rows_with_any(lists: pd.Series[Any], names: frozenset[str]) -> NDArray[np.bool_]:
    """Return which rows hold one of the names, from JSON lists of few different texts."""
    texts, place = np.unique(lists.to_numpy(dtype=str), return_inverse=True)
    return np.array([not names.isdisjoint(json.loads(text)) for text in texts], dtype=bool)[place]


def truth_of(state: str, reason_code: str | None) -> bool | None:
    """Return whether a settled answer is faulty; None while it is escalated or not settled."""
    if state == "overridden":
        return reason_code not in FORM_ONLY
    return {"rejected": True, "approved": False}.get(state)


def answer_rows(decided: pd.DataFrame, score: FaultScore) -> pd.DataFrame:
    """Return one row an answer that a decision settles and an audit judged, from the columns of the
    store.

    ``faulty`` is None while a case is escalated; ``blind`` says that none of its decisions saw the
    machine's verdict; ``original``: decided about the answer that the audit's verdict is about.
    ``probability`` is by ``score``.
    """
    cases = codes(decided["case_id"].to_numpy())
    seen = np.bincount(cases, ~decided["blind"].to_numpy(dtype=bool)) > 0
    frame = decided.assign(blind=~seen[cases])
    settled = frame[
        frame["settles"].astype(bool) & frame["state"].isin(SETTLED) & frame["auditor"].notna()
    ]
    codes_given = zip(settled["state"], settled["reason_code"], strict=True)
    truths = [truth_of(state, code) for state, code in codes_given]
    return _judge_frame(
        settled.assign(
            faulty=pd.Series(truths, index=settled.index, dtype=object), source="decision"
        ),
        score,
    )


def gold_answer_rows(labelled: pd.DataFrame, score: FaultScore) -> pd.DataFrame:
    """Return one row an audited answer with gold or imported labels: ``labels.clean``, else all its
    claims.
    """
    found = pd.Series([_gold_truth(json.loads(text)) for text in labelled["labels"]], dtype=object)
    frame = labelled.assign(faulty=found, source="gold", blind=True, simulated=False)
    return _judge_frame(frame[frame["faulty"].notna()], score)


def _judge_frame(frame: pd.DataFrame, score: FaultScore) -> pd.DataFrame:
    accused = _rows_with_any(frame["flags"], FLAGGING_ISSUES)
    tier = (
        frame["tier"]
        .where(frame["tier"].notna(), AUDIT_VERDICTS[2])
        .where(~accused, AUDIT_VERDICTS[0])
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
    """Return whether people found a claim not supported; None where they did not say."""
    verdict = label.get("verdict") or label.get("support") or label.get("label")
    if not isinstance(verdict, str) or verdict.casefold() in (
        "n/a",
        "unverifiable",
        "unscored",
        "",
    ):
        return None
    return verdict.casefold() not in ("supported", "complete", "attributable")


# --- figures
# -------------------------------------------------------------------------------------------------------


class Flag(NamedTuple):
    """A flag, reason or verdict: the share of faulty answers where it stands, and the share of
    faulty ones with it.
    """

    name: str
    flagged: int
    precision: AgreementEstimate
    recall: AgreementEstimate


class MachineComparison(NamedTuple):
    """The audit beside people on some answers or claims.

    ``confusion`` counts (what the audit says, faulty or right). ``kappa`` is that of "something is
    wrong" with "faulty"; ``accuracy`` stands beside ``constant``, what always giving the more
    frequent verdict would reach. ``error_floor`` is the calibration error that chance alone gives a
    perfect score with so few answers (95th percentile).
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


def compare(frame: pd.DataFrame, *, accused: str = "must_look") -> MachineComparison:
    """Compare what the audit found with what people found, over rows whose ``faulty`` is known.

    The columns are ``found`` (``accused`` is its value where something is wrong), ``faulty``,
    ``question``, and where there are any ``flags`` and ``probability``.
    """
    frame = frame[frame["faulty"].notna()]
    truth = frame["faulty"].to_numpy(dtype=bool)
    accusing = (frame["found"] == accused).to_numpy()
    questions = codes((frame["cluster"] if "cluster" in frame else frame["question"]).to_numpy())
    cells = accusing.astype(np.int64) * 2 + truth
    counted = UnitCounts.of(
        np.column_stack([accusing, truth]).astype(np.int64), cells, questions, 4
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
        precision=share(truth[accusing], questions[accusing]),
        # where only what is accused was checked, every fault found is an accused one: that says
        # nothing
        recall=(
            AgreementEstimate(None, why="unknown: only what it accuses was checked")
            if len(truth) and accusing.all()
            else share(accusing[truth], questions[truth])
        ),
        kappa=counted.estimate(lambda table: cohen_kappa(table.reshape(*table.shape[:-1], 2, 2))),
        accuracy=share(accusing == truth, questions),
        constant=max(float(truth.mean()), 1 - float(truth.mean())) if len(truth) else None,
        flags=tuple(_flags(frame, truth, questions)),
        curve=tuple(reliability(truth, predicted)) if calibrated else (),
        calibration=calibration_error(truth, predicted) if calibrated else None,
        error_floor=error_floor(predicted) if calibrated else None,
    )


def _count_faulty_and_right(truth: np.ndarray[Any, Any]) -> tuple[int, int]:
    return int(truth.sum()), int((~truth).sum())


def _flags(frame: pd.DataFrame, truth: Any, questions: Any) -> Iterator[Flag]:
    """Yield each flag and reason of the rows by name; they are JSON lists of few different texts.

    A run often has a flag as a reason too: an answer with either has it.
    """
    columns = [column for column in ("reasons", "flags") if column in frame]
    has: dict[str, NDArray[np.bool_]] = {}
    for column in columns:
        texts, place = np.unique(frame[column].to_numpy(dtype=str), return_inverse=True)
        lists = [set(json.loads(text)) for text in texts]
        for name in sorted(set().union(*lists)):
            found = np.array([name in each for each in lists])[place]
            has[name] = has[name] | found if name in has else found
    for name, found in has.items():
        yield Flag(
            name,
            int(found.sum()),
            share(truth[found], questions[found]),
            share(found[truth], questions[truth]),
        )


def breakdown(frame: pd.DataFrame, by: str) -> dict[str, MachineComparison]:
    """Compare by the values of a column, most answers first: auditor, dataset, field, or the month
    of ``at``.
    """
    values = (
        frame["at"].str.slice(0, 7) if by == "month" else frame[by].fillna("(none)").astype(str)
    )
    plain = frame[["found", "faulty", "cluster", "question"]]
    order = sorted(values.unique()) if by == "month" else list(values.value_counts().index[:20])
    return {name: compare(plain[values == name]) for name in order}


# --- claims and references
# ------------------------------------------------------------------------------------------


def part_rows(labelled: Iterable[CaseOutcome]) -> pd.DataFrame:
    """Return the claims and references that people labelled, each with what the audit found in it.

    Labels come with the case (gold, imported) or from a decision. A claim is matched with the
    audit's claim that shares most of its words in the answer, a reference with the same reference
    of the same sentence; what the audit has no verdict on is left out.
    """
    rows: list[dict[str, Any]] = []
    for outcome in labelled:
        judgement = outcome.current
        if judgement is None or judgement.iteration is None:
            continue
        gold = outcome.case.get("labels")
        about = {"case_id": str(outcome.case["id"]), "question": str(outcome.case.get("query", ""))}
        named = _gold_items(gold if isinstance(gold, dict) else {}, outcome)
        labels = [("gold", True, judgement.iteration, *label) for label in named]
        for each in outcome.judgements:
            decision = each.entry.decision if each.entry else None
            if decision is None or each.iteration is None:
                continue
            for label in decision.labels:
                truth = _claim_truth({"label": label.label})
                if (
                    label.target in ("claim", "reference")
                    and label.start is not None
                    and truth is not None
                ):
                    place = label.target, label.start, label.end or 0, truth
                    labels.append(("decision", not decision.machine_shown, each.iteration, *place))
        for source, blind, iteration, level, start, end, faulty in labels:
            if found := _verdict_at(level, start, end, iteration):
                verdicts = {
                    "source": source,
                    "blind": blind,
                    "level": level,
                    "found": found,
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
    """Return the audit's verdict on the claim or reference that shares most with this place; ""
    where it has none.
    """
    if level == "claim":
        placed = [
            (check.verdict, check.claim)
            for check in iteration.claims
            if check.claim.start is not None
        ]
    else:
        accused = [each for each in iteration.issues if each.rule == "misattributed_reference"]
        placed = [
            (
                (
                    "misattributed"
                    if any(_places_overlap(citation, each) for each in accused)
                    else citation.status
                ),
                citation,
            )
            for citation in iteration.citation_audit.citations
        ]
    shared = [(min(end, words.end) - max(start, words.start), found) for found, words in placed]
    most, found = max(shared, key=lambda each: each[0], default=(0, ""))
    return str(found) if most > 0 else ""


def _places_overlap(one: Any, other: Any) -> bool:
    return other.start is not None and one.start < other.end and other.start < one.end


FLAGGED_VERDICTS = {
    "claim": ("contradicted", "unsupported", "partial"),
    "reference": ("invalid", "misattributed"),
}
"""Verdicts that say something is wrong."""


def compare_parts(frame: pd.DataFrame, level: str) -> MachineComparison:
    """Compare the verdicts on claims or references with people's; each verdict stands in the table
    of flags.
    """
    rows = frame[frame["level"] == level]
    accused = rows["found"].isin(FLAGGED_VERDICTS[level])
    verdicts = rows["found"].map(lambda verdict: json.dumps([verdict]))
    found = compare(
        rows.assign(found=accused.map({True: "accused", False: "not accused"}), flags=verdicts),
        accused="accused",
    )
    truth = rows["faulty"].to_numpy(dtype=bool)
    by_verdict = {
        str(name): _count_faulty_and_right(truth[(rows["found"] == name).to_numpy()])
        for name in rows["found"].unique()
    }
    return found._replace(confusion=by_verdict)


# --- the miss rate
# -----------------------------------------------------------------------------------------------


class Stratum(NamedTuple):
    """Answers that passed and were drawn with one probability: how many passed, how many of the
    drawn are decided.
    """

    name: str
    passed: int
    decided: int
    faulty: int


def miss_rate(strata: Sequence[Stratum]) -> AgreementEstimate:
    """Return the share of faulty answers among those that pass, from spot checks; strata weigh by
    what passed in them.

    A stratum without a decision says nothing: it is left out, and ``why`` says what share of the
    answers that is. The interval is the exact one of as many independent draws as give the same
    variance.
    """
    known = [each for each in strata if each.decided]
    passed = sum(each.passed for each in strata)
    if not known:
        return AgreementEstimate(None, why="no spot check is decided")
    total = sum(each.passed for each in known)
    value = variance = plain = 0.0
    for each in known:
        weight, rate = each.passed / total, each.faulty / each.decided
        # a stratum without a fault still varies
        softened = (each.faulty + 0.5) / (each.decided + 1)
        value += weight * rate
        variance += weight**2 * softened * (1 - softened) / each.decided
        plain += weight * softened
    n = sum(each.decided for each in known)
    effective = min(float(n), plain * (1 - plain) / variance) if len(known) > 1 else float(n)
    left = 1 - total / passed if passed else 0.0
    why = (
        f"{left:.0%} of what passed is in strata without a decision and left out"
        if left > 0.005
        else ""
    )
    return AgreementEstimate(value, *exact_bounds(value * effective, effective), n, why)


def draws_for_width(rate: AgreementEstimate, width: float) -> int | None:
    """Return how many more decided spot checks bring the interval to this width, if the rate stays
    as it is.

    None before there is an estimate.
    """
    if (value := rate.value) is None:
        return None
    return bisect_left(
        range(1_000_000), True, key=lambda more: _interval_width(value, rate.n + more) <= width
    )


def _interval_width(rate: float, n: int) -> float:
    low, high = exact_bounds(math.floor(rate * n + 0.5), n)
    return high - low
