"""Measure how the offline grader judges real abstracts, and compare it with labels by hand.

    PYTHONPATH=. python benchmarks/screening_verdicts.py --data FOLDER

Makes three measurements:

- every abstract of ``pubmedqa_cases.jsonl`` with its own question (without the authors' conclusions
  and titles): the share of each recommendation and of unknown designs;
- the 60 weak or off-topic pairs of ``screening_labels.jsonl``: the share discarded;
- its sample of 60 pairs labeled by hand: precision and recall of each recommendation.

The labels refer to abstracts by id, so the command needs the data.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

from masis.schema.screening import Abstract, Grade
from masis.screening.grading.offline_grader import offline_grader

LABELS = Path(__file__).parent / "screening_labels.jsonl"
RECOMMENDATIONS = ("keep", "needs_more", "discard")


def rows(path: Path) -> list[dict[str, Any]]:
    """Return the records of a file of JSON Lines."""
    return [json.loads(line) for line in path.open(encoding="utf-8")]


def main(data: Path) -> None:
    """Print the figures."""
    if not (data / "pubmedqa_cases.jsonl").exists():
        raise SystemExit(f"skipped: no pubmedqa_cases.jsonl in {data}")
    cases = {case["id"]: case for case in rows(data / "pubmedqa_cases.jsonl")}
    abstracts = {
        name: Abstract(id=name, text=" ".join(chunk["text"] for chunk in case["evidence"]))
        for name, case in cases.items()
    }
    for row in rows(data / "study_types_val.jsonl"):
        abstracts[row["pmid"]] = Abstract(id=row["pmid"], title=row["title"], text=row["abstract"])
    grader = offline_grader()

    def grade(question: str, name: str) -> Grade:
        return grader.grade(question, [abstracts[name]])[0]

    gradings = [grade(case["query"], name) for name, case in cases.items()]
    votes: Counter[str] = Counter(result.recommendation for result in gradings)
    print(f"{len(gradings)} PubMedQA abstracts, each with its own question")
    print("  " + ", ".join(f"{name} {votes[name] / len(gradings):.1%}" for name in RECOMMENDATIONS))
    print(
        "  rules: "
        + ", ".join(
            f"{rule} {count}"
            for rule, count in Counter(result.rule for result in gradings).most_common()
        )
    )
    designs = Counter(result.design for result in gradings)
    print(
        f"  unknown design {designs['other'] / len(gradings):.1%}; "
        + str(dict(designs.most_common()))
    )

    labels = rows(LABELS)
    graded = [
        (row, grade(row.get("question") or cases[row["question_of"]]["query"], row["abstract"]))
        for row in labels
    ]
    for why in ("off_topic", "weak"):
        chosen = [
            result
            for row, result in graded
            if row["set"] != "sample" and row["why"].startswith(why)
        ]
        discarded = sum(result.recommendation == "discard" for result in chosen)
        print(
            f"{why}: {discarded} of {len(chosen)} discarded;"
            f" {dict(Counter(result.rule for result in chosen))}"
        )
    pairs = [
        (row["label"], result.recommendation) for row, result in graded if row["set"] == "sample"
    ]
    print(f"sample of {len(pairs)} labeled by hand: {sum(a == b for a, b in pairs)} equal")
    for name in RECOMMENDATIONS:
        hits = sum(a == b == name for a, b in pairs)
        recommended, labeled = sum(b == name for _, b in pairs), sum(a == name for a, _ in pairs)
        print(f"  {name}: precision {hits} of {recommended}, recall {hits} of {labeled}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with the public data sets")
    main(parser.parse_args().data)
