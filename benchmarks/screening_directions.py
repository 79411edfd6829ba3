"""Measure how often the extracted direction of a study's conclusion matches the authors' answer.

    PYTHONPATH=. python benchmarks/screening_directions.py --data FOLDER

For each question, PubMedQA has the answer that the authors' conclusion gives: yes, no or maybe. The
direction "effect" counts as yes; "no clear effect" and "opposite" count as no. The odd rows were
used to develop the rules, so report the even ones.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

from masis.schema.screening import Abstract
from masis.screening.synthesis.findings import finding

ANSWERS = {"effect": "yes", "no_clear_effect": "no", "opposite": "no", "unclear": "maybe"}


def main(data: Path) -> None:
    """Print how often the direction is correct, on the development half and the held-out one."""
    path = data / "pubmedqa_cases.jsonl"
    if not path.exists():
        raise SystemExit(f"skipped: no pubmedqa_cases.jsonl in {data}")
    cases = [json.loads(line) for line in path.open(encoding="utf-8")]
    for name, half in (("development", cases[1::2]), ("held out", cases[0::2])):
        table: Counter[tuple[str, str]] = Counter()
        for case in half:
            text = "\n".join(f"{chunk['section']}: {chunk['text']}" for chunk in case["evidence"])
            abstract = Abstract(id=case["id"], text=f"{text}\nCONCLUSIONS: {case['answer']}")
            direction = finding(case["query"], abstract).direction
            table[case["labels"]["final_decision"], ANSWERS[direction]] += 1
        stated = [
            (label, read)
            for (label, read), count in table.items()
            for _ in range(count)
            if read != "maybe"
        ]
        right = sum(label == read for label, read in stated)
        share = f"correct in {right} ({right / len(stated):.1%})"
        print(f"{name}: {len(half)} conclusions, a direction in {len(stated)}, {share}")
        for label in ("yes", "no", "maybe"):
            print(
                f"  {label:6}"
                + "".join(
                    f"  read as {read} {table[label, read]}" for read in ("yes", "no", "maybe")
                )
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with the public data sets")
    main(parser.parse_args().data)
