"""Measure the fitted verifier.

    python -m tools.train_verifier.report ranking --data FOLDER report  # AUROC and bands, with intervals
    python -m tools.train_verifier.report thresholds --data FOLDER      # what each threshold decides
    python -m tools.train_verifier.report vetoes --data FOLDER          # each veto off in turn
    python -m tools.train_verifier.report alterations --data FOLDER     # copied sentences, altered
    python -m tools.train_verifier.report speed --data FOLDER           # CPU seconds

On the development half (`fit`) the probabilities are those of models that have not seen a row's group, as `fit.py`
stores them; `thresholds` and `vetoes` read that half only. With `--before FILE` (JSON lines of `set`, `id` and
`support`) another verifier is compared on the same rows.
"""

from __future__ import annotations

import argparse
import random
import re
import time
from collections import Counter
from pathlib import Path

import numpy as np

from masis.api.audits import run_audit
from masis.audit.sentences import split_sentences
from masis.offline.inference.encoder import load_encoder
from masis.offline.inference.features import NAMES
from masis.offline.inference.support_classifier import SupportClassifier, load_classifier
from masis.offline.matching.evidence_index import EvidenceIndex
from masis.schema.case import Case
from masis.settings import Settings
from tools.train_verifier.alterations import alterations
from tools.train_verifier.data import EVALUATED, Half, read, read_lines
from tools.train_verifier.fit import LEFT_OUT, bands_of
from tools.train_verifier.samples import Array, Sample

RESAMPLES = 1000
SENTENCES_OF_EACH_KIND = 60
ALTERED_SETS = ("SummEdits", "HAGRID", "PubMedQA", "Triples")
_WORD = re.compile(r"\w{3,}")


def main() -> None:
    """Print the report that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reports = parser.add_subparsers(dest="report", required=True)
    for name in ("ranking", "thresholds", "vetoes", "alterations", "speed"):
        options = reports.add_parser(name)
        options.add_argument("--data", type=Path, required=True, help="the folder with the labelled sets")
        if name == "ranking":
            options.add_argument("half", choices=("fit", "report"))
            options.add_argument("--before", type=Path, help="scores of another verifier to compare with")
    chosen = parser.parse_args()
    model = load_classifier()
    if chosen.report == "ranking":
        report_ranking(chosen.data, chosen.half, model, chosen.before)
    elif chosen.report == "thresholds":
        report_thresholds(Sample(chosen.data, "fit"), np.load(LEFT_OUT))
    elif chosen.report == "vetoes":
        report_vetoes(Sample(chosen.data, "fit"), np.load(LEFT_OUT), model)
    elif chosen.report == "alterations":
        report_alterations(chosen.data)
    else:
        report_speed(chosen.data)


def report_ranking(data: Path, half: Half, model: SupportClassifier, before: Path | None) -> None:
    """Print AUROC and bands of one half, beside simple baselines.

    Intervals are of 95%, from resamples of groups; differences are paired.
    """
    sample = Sample(data, half)
    if half == "fit":
        support = np.load(LEFT_OUT)
    else:
        support = np.array([model.support(dict(zip(NAMES, row, strict=True))) for row in sample.features])
    column = {name: sample.features[:, number] for number, name in enumerate(NAMES)}
    scores = {
        "overlap": np.array([_overlap(row.claim, row.evidence) for row in sample.rows]),
        "overlap in a window": column["exact_window"],
        "cosine": column["cos_window"],
    }
    if before is not None:
        known = {(row["set"], row["id"]): row["support"] for row in read_lines(before)}
        scores["before"] = np.array([known.get((row.set, row.id), 0.5) for row in sample.rows])
    scores["new"] = support
    draw = np.random.default_rng(5)
    for name in EVALUATED:
        rows = np.flatnonzero((sample.sets == name) & ~sample.training_only)
        if len(set(sample.supported[rows])) == 2:
            print(f"{name}: {len(rows)} claims, {len(rows) - sample.supported[rows].sum()} bad")
            _print_auroc(sample, rows, scores, draw)
    bands = bands_of(sample, support, model.confirm, model.accuse)
    print("% of true / of bad claims confirmed, of true / of bad claims accused, accusations right")
    evaluated = ~sample.training_only
    for name, members in [*((name, evaluated & (sample.sets == name)) for name in EVALUATED), ("pooled", evaluated)]:
        good, bad = members & (sample.supported == 1), members & (sample.supported == 0)
        confirmed, accused = bands == "confirmed", bands == "accused"
        print(
            f"    {name:10s} {_percent(confirmed[good])} / {_percent(confirmed[bad])}, "
            f"{_percent(accused[good])} / {_percent(accused[bad])}, "
            f"{(accused & bad).sum()} of {(accused & members).sum()}"
        )


def _overlap(claim: str, evidence: tuple[tuple[str, str], ...]) -> float:
    words = set(_WORD.findall(claim.lower()))
    return len(words & set(_WORD.findall(" ".join(text for _, text in evidence).lower()))) / max(1, len(words))


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


def _percent(members: Array) -> str:
    return f"{100 * members.mean():5.1f}" if len(members) else "    -"


def _set_members(sample: Sample) -> dict[str, Array]:
    """Return which rows belong to each set; rows for training only form sets of their own."""
    members = {name: (sample.sets == name) & ~sample.training_only for name in EVALUATED}
    return members | {name: sample.sets == name for name in ("altered", "FEVER", "BEGIN", "copied")}


def report_thresholds(sample: Sample, support: Array) -> None:
    """Print what each threshold confirms and accuses on the development half."""
    good, sets = sample.supported == 1, _set_members(sample)
    print("confirm from: % of true / of bad claims confirmed")
    print("     ", *(f"{name:>13s}" for name in sets))
    for threshold in (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9):
        confirmed = bands_of(sample, support, threshold, 0.0) == "confirmed"
        shares = (f"{_percent(confirmed[rows & good])} / {_percent(confirmed[rows & ~good])}" for rows in sets.values())
        print(f"{threshold:.2f} ", *shares)
    print("accuse to: accusations right of all, and % of true claims accused")
    evaluated = ~sample.training_only
    for threshold in (0.0, 0.03, 0.05, 0.075, 0.1, 0.125, 0.15, 0.2, 0.25, 0.3):
        below = bands_of(sample, support, 1.0, threshold) == "accused"
        counts = (
            f"{name} {(below & rows & ~good).sum()} of {(below & rows).sum()} ({_percent(below[rows & good]).strip()})"
            for name, rows in [*sets.items(), ("pooled", evaluated)]
        )
        print(f"{threshold:.2f} ", "; ".join(counts))


def report_vetoes(sample: Sample, support: Array, model: SupportClassifier) -> None:
    """Print what is confirmed with each veto off in turn, on the development half."""
    good, sets = sample.supported == 1, _set_members(sample)
    codes = sorted({code for claim in sample.vetoes for code in claim})
    for title, off in [("all vetoes", set()), *((f"without {code}", {code}) for code in codes), ("none", set(codes))]:
        confirmed = np.array(
            [
                p >= model.confirm and not accused and not set(vetoes) - off
                for p, vetoes, accused in zip(support, sample.vetoes, sample.accused, strict=True)
            ]
        )
        shares = (
            f"{name} {_percent(confirmed[rows & good]).strip()}/{_percent(confirmed[rows & ~good]).strip()}"
            for name, rows in sets.items()
        )
        print(f"{title:24s}", *shares)


def report_alterations(data: Path) -> None:
    """Print how sentences of development evidence are judged, copied and altered in one respect."""
    draw = random.Random(7)
    rows = [row for row, _ in read(data, "fit") if not row.training_only]
    documents = list(dict.fromkeys(row.evidence for row in rows if row.set in ALTERED_SETS))
    draw.shuffle(documents)
    kinds = alterations(draw)
    verdicts: dict[str, Counter[str]] = {kind: Counter() for kind in kinds}
    wrong: dict[str, list[str]] = {kind: [] for kind in kinds}
    for evidence in documents[:220]:
        index = EvidenceIndex(evidence)
        texts = [text[span.start : span.end] for _, text in evidence for span in split_sentences(text)]
        texts = [text for text in texts if 8 <= len(text.split()) <= 35 and "\n" not in text]
        draw.shuffle(texts)
        for kind, alter in kinds.items():
            if verdicts[kind].total() >= SENTENCES_OF_EACH_KIND:
                continue
            altered = next((claim for text in texts[:4] if (claim := alter(text))), None)
            if altered is None:
                continue
            found = index.assess(altered)
            verdicts[kind][found.verdict] += 1
            if (found.verdict == "supported") != (kind == "copied"):
                wrong[kind].append(f"{found.verdict} {found.support} {altered}")
    for kind, counts in verdicts.items():
        print(f"{kind:16s}", dict(counts))
        for line in wrong[kind][:4] if kind == "copied" else [w for w in wrong[kind] if w.startswith("supported")][:4]:
            print("    wrong:", line)


def report_speed(data: Path) -> None:
    """Print CPU seconds for loading, for whole audits of ExpertQA, and for 100 sentences with 100 chunks."""
    start = time.process_time()
    load_encoder()
    print(f"load: {time.process_time() - start:.2f} s")
    cases = [case for case in read_lines(data / "expertqa_cases.jsonl") if any(e.get("text") for e in case["evidence"])]
    settings = Settings()
    begin = time.process_time()
    for case in cases[::2]:
        run_audit(Case.model_validate(case), settings)
    seconds, count = time.process_time() - begin, len(cases[::2])
    print(f"{count} whole ExpertQA audits: {seconds:.2f} s, {count / seconds:.2f} a second")
    texts = [e["text"] for case in cases for e in case["evidence"] if e.get("text")][:100]
    index = EvidenceIndex([(str(number), text) for number, text in enumerate(texts)])
    claims = [case["answer"][s.start : s.end] for case in cases for s in split_sentences(case["answer"])][:100]
    words = sum(len(text.split()) for text in texts)
    for title in (f"100 sentences, 100 chunks of {words} words", "from the cache"):
        begin = time.process_time()
        for claim in claims:
            index.assess(claim)
        print(f"{title}: {time.process_time() - begin:.4f} s")


if __name__ == "__main__":
    main()
