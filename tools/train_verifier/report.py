"""Measure the fitted verifier.

    python -m tools.train_verifier.report ranking --data ../shared/data report  # AUROC and bands, with intervals
    python -m tools.train_verifier.report thresholds --data ../shared/data      # what each threshold decides
    python -m tools.train_verifier.report vetoes --data ../shared/data          # each veto off in turn
    python -m tools.train_verifier.report alterations --data ../shared/data     # copied sentences, altered
    python -m tools.train_verifier.report speed --data ../shared/data           # CPU seconds

On the development half (`fit`) the probabilities are those of models that have not seen a row's group, as `fit.py`
stores them; `thresholds` and `vetoes` read that half only.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from pathlib import Path

import numpy as np

from masis.bench.rows import BenchRow
from masis.bench.tasks import assessed
from tools.train_verifier.alterations import alterations
from tools.train_verifier.data import EVALUATED, Half, read, read_lines
from tools.train_verifier.encoder import Array
from tools.train_verifier.features import FEATURE_NAMES
from tools.train_verifier.fit import LEFT_OUT
from tools.train_verifier.samples import ENCODER, Sample
from tools.train_verifier.text import sentences
from tools.train_verifier.verifier import WEIGHTS, Model, Verifier, decide

RESAMPLES = 1000
SENTENCES_OF_EACH_KIND = 60
ALTERED_SETS = ("SummEdits", "HAGRID", "PubMedQA", "Triples")


def main() -> None:
    """Print the report that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reports = parser.add_subparsers(dest="report", required=True)
    for name in ("ranking", "thresholds", "vetoes", "alterations", "speed"):
        options = reports.add_parser(name)
        options.add_argument("--data", type=Path, required=True, help="the folder with the labelled sets")
        options.add_argument("--encoder", type=Path, default=ENCODER, help=f"default: {ENCODER}")
        options.add_argument("--weights", type=Path, default=WEIGHTS, help="default: weights.json beside this file")
        if name == "ranking":
            options.add_argument("half", choices=("fit", "report"))
    chosen = parser.parse_args()
    if chosen.report == "ranking":
        report_ranking(chosen.data, chosen.half, chosen.encoder, Model.read(chosen.weights))
    elif chosen.report == "thresholds":
        report_thresholds(Sample(chosen.data, "fit", chosen.encoder), np.load(LEFT_OUT))
    elif chosen.report == "vetoes":
        report_vetoes(Sample(chosen.data, "fit", chosen.encoder), np.load(LEFT_OUT), Model.read(chosen.weights).confirm)
    elif chosen.report == "alterations":
        report_alterations(chosen.data, Verifier.load(chosen.encoder, chosen.weights))
    else:
        report_speed(chosen.data, chosen.encoder, chosen.weights)


def report_ranking(data: Path, half: Half, encoder: Path, model: Model) -> None:
    """Print AUROC and bands of one half, beside the offline auditor and simple baselines.

    Intervals are of 95%, from resamples of groups; differences are paired.
    """
    sample = Sample(data, half, encoder)
    if half == "fit":
        support = np.load(LEFT_OUT)
    else:
        support = 1 / (1 + np.exp(-(model.slope * model.log_odds(sample.features) + model.intercept)))
    auditor_support, auditor_verdicts = _auditor(sample)
    column = {name: sample.features[:, number] for number, name in enumerate(FEATURE_NAMES)}
    scores = {
        "auditor": auditor_support,
        "overlap": column["plain"],
        "overlap in a window": column["exact_window"],
        "cosine": column["cos_window"],
        "new": support,
    }
    draw = np.random.default_rng(5)
    for name in EVALUATED:
        rows = np.flatnonzero((sample.sets == name) & ~sample.training_only)
        if len(set(sample.supported[rows])) == 2:
            print(f"{name}: {len(rows)} claims, {len(rows) - sample.supported[rows].sum()} bad")
            _print_auroc(sample, rows, scores, draw)
    bands = np.array(
        [decide(p, claim, model.confirm, model.accuse)[0] for p, claim in zip(support, sample.claims, strict=True)]
    )
    _print_bands(sample, "new", bands == "confirmed", bands == "accused")
    _print_bands(
        sample, "auditor", auditor_verdicts == "supported", np.isin(auditor_verdicts, ("unsupported", "contradicted"))
    )


def _auditor(sample: Sample) -> tuple[Array, Array]:
    """Return support and verdict of the product's offline auditor; rows it does not assess count as 0.5."""
    rows = [row for row in sample.rows if not row.training_only]
    support, verdicts = np.full(len(sample.rows), 0.5), np.full(len(sample.rows), "", dtype=object)
    numbers = np.flatnonzero(~sample.training_only)
    bench_rows = [BenchRow(row.id, row.claim, row.evidence, not row.supported, row.keys) for row in rows]
    for number, assessment in zip(numbers, assessed(bench_rows), strict=True):
        if assessment.support is not None:
            support[number], verdicts[number] = assessment.support, assessment.verdict
    return support, verdicts


def _auroc(supported: Array, scores: Array) -> float:
    """Return the AUROC, a tie counting half."""
    values, places = np.unique(scores, return_inverse=True)
    good = np.bincount(places, supported, len(values))
    bad = np.bincount(places, 1 - supported, len(values))
    return float((good * (np.cumsum(bad) - bad / 2)).sum() / (good.sum() * bad.sum()))


def _print_auroc(sample: Sample, rows: Array, scores: dict[str, Array], draw: np.random.Generator) -> None:
    supported = sample.supported[rows]
    groups, group_of_row = np.unique(sample.groups[rows], return_inverse=True)
    members = [np.flatnonzero(group_of_row == number) for number in range(len(groups))]
    resamples = [
        np.concatenate([members[number] for number in draw.integers(0, len(groups), len(groups))])
        for _ in range(RESAMPLES)
    ]
    # A resample with one class only has no AUROC.
    resamples = [resample for resample in resamples if 0 < supported[resample].sum() < len(resample)]
    drawn = {
        name: np.array([_auroc(supported[resample], values[rows][resample]) for resample in resamples])
        for name, values in scores.items()
    }
    whole = {name: _auroc(supported, values[rows]) for name, values in scores.items()}
    for name in scores:
        low, high = np.percentile(drawn[name], (2.5, 97.5))
        line = f"    {name:20s} {whole[name]:.3f} [{low:.3f}, {high:.3f}]"
        if name != "new":
            low, high = np.percentile(drawn["new"] - drawn[name], (2.5, 97.5))
            line += f"   new - {name}: {whole['new'] - whole[name]:+.3f} [{low:+.3f}, {high:+.3f}]"
        print(line)


def _print_bands(sample: Sample, title: str, confirmed: Array, accused: Array) -> None:
    print(f"{title}: % of true / of bad claims confirmed, of true / of bad claims accused, accusations right")
    evaluated = ~sample.training_only
    for name, members in [*((name, evaluated & (sample.sets == name)) for name in EVALUATED), ("pooled", evaluated)]:
        good, bad = members & (sample.supported == 1), members & (sample.supported == 0)
        print(
            f"    {name:10s} {_percent(confirmed[good])} / {_percent(confirmed[bad])}, "
            f"{_percent(accused[good])} / {_percent(accused[bad])}, "
            f"{(accused & bad).sum()} of {(accused & members).sum()}"
        )


def _percent(members: Array) -> str:
    return f"{100 * members.mean():5.1f}" if len(members) else "    -"


def _set_members(sample: Sample) -> dict[str, Array]:
    """Return which rows belong to each set; rows for training only form sets of their own."""
    members = {name: (sample.sets == name) & ~sample.training_only for name in EVALUATED}
    return members | {name: sample.sets == name for name in ("altered", "FEVER", "BEGIN", "copied")}


def report_thresholds(sample: Sample, support: Array) -> None:
    """Print what each threshold confirms and accuses on the development half."""
    accused = np.array([bool(claim.accusations) for claim in sample.claims])
    vetoed = np.array([bool(claim.vetoes) for claim in sample.claims])
    good, sets = sample.supported == 1, _set_members(sample)
    print("confirm from: % of true / of bad claims confirmed")
    print("     ", *(f"{name:>13s}" for name in sets))
    for threshold in (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85):
        confirmed = (support >= threshold) & ~vetoed & ~accused
        shares = (f"{_percent(confirmed[rows & good])} / {_percent(confirmed[rows & ~good])}" for rows in sets.values())
        print(f"{threshold:.2f} ", *shares)
    print("accuse to: accusations right of all, and % of true claims accused")
    evaluated = ~sample.training_only
    for threshold in (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3):
        below = (support <= threshold) | accused
        counts = (
            f"{name} {(below & rows & ~good).sum()} of {(below & rows).sum()} ({_percent(below[rows & good]).strip()})"
            for name, rows in [*sets.items(), ("pooled", evaluated)]
        )
        print(f"{threshold:.2f} ", "; ".join(counts))


def report_vetoes(sample: Sample, support: Array, confirm: float) -> None:
    """Print what is confirmed with each veto off in turn, on the development half."""
    good, sets = sample.supported == 1, _set_members(sample)
    codes = sorted({code for claim in sample.claims for code in claim.vetoes})
    for title, off in [("all vetoes", set()), *((f"without {code}", {code}) for code in codes), ("none", set(codes))]:
        confirmed = np.array(
            [
                p >= confirm and not claim.accusations and not set(claim.vetoes) - off
                for p, claim in zip(support, sample.claims, strict=True)
            ]
        )
        shares = (
            f"{name} {_percent(confirmed[rows & good]).strip()}/{_percent(confirmed[rows & ~good]).strip()}"
            for name, rows in sets.items()
        )
        print(f"{title:24s}", *shares)


def report_alterations(data: Path, verifier: Verifier) -> None:
    """Print how sentences of development evidence are judged, copied and altered in one respect."""
    draw = random.Random(7)
    rows = [row for row, _ in read(data, "fit") if not row.training_only]
    documents = list(dict.fromkeys(row.evidence for row in rows if row.set in ALTERED_SETS))
    draw.shuffle(documents)
    kinds = alterations(draw)
    bands: dict[str, Counter[str]] = {kind: Counter() for kind in kinds}
    wrong: dict[str, list[str]] = {kind: [] for kind in kinds}
    for evidence in documents[:220]:
        texts = [text[start:end] for _, text in evidence for start, end in sentences(text)]
        texts = [text for text in texts if 8 <= len(text.split()) <= 35 and "\n" not in text]
        draw.shuffle(texts)
        for kind, alter in kinds.items():
            if bands[kind].total() >= SENTENCES_OF_EACH_KIND:
                continue
            altered = next((claim for text in texts[:4] if (claim := alter(text))), None)
            if altered is None:
                continue
            judgement = verifier.verify([altered], evidence)[0]
            bands[kind][judgement.band] += 1
            if judgement.band == ("accused" if kind == "copied" else "confirmed"):
                wrong[kind].append(f"{judgement.support} {altered}")
    for kind, counts in bands.items():
        print(f"{kind:16s}", dict(counts))
        for line in wrong[kind][:4]:
            print("    wrong:", line)


def report_speed(data: Path, encoder: Path, weights: Path) -> None:
    """Print CPU seconds for loading, for whole ExpertQA answers, and for 100 sentences with 100 chunks."""
    start = time.process_time()
    verifier = Verifier.load(encoder, weights)
    print(f"load: {time.process_time() - start:.2f} s")
    cases = [case for case in read_lines(data / "expertqa_cases.jsonl") if any(e.get("text") for e in case["evidence"])]
    answers = [[case["answer"][start:end] for start, end in sentences(case["answer"])] for case in cases]
    evidence = [[(chunk["id"], chunk.get("text") or "") for chunk in case["evidence"]] for case in cases]
    begin = time.process_time()
    for claims, chunks in zip(answers[::2], evidence[::2], strict=True):
        verifier.verify(claims, chunks)
    seconds, count = time.process_time() - begin, len(answers[::2])
    print(
        f"{count} ExpertQA cases, {sum(map(len, answers[::2]))} claims: {seconds:.2f} s, {count / seconds:.2f} cases/s"
    )
    chunks = [(str(number), text) for number, text in enumerate(t for case in evidence for _, t in case if t)][:100]
    claims = [claim for answer in answers for claim in answer][:100]
    verifier = Verifier.load(encoder, weights)
    for title in (
        f"100 sentences, 100 chunks of {sum(len(text.split()) for _, text in chunks)} words",
        "from the cache",
    ):
        begin = time.process_time()
        verifier.verify(claims, chunks)
        print(f"{title}: {time.process_time() - begin:.4f} s")


if __name__ == "__main__":
    main()
