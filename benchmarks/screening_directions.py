"""How often the direction of a study's conclusion is read as its authors' yes or no.

    PYTHONPATH=. python benchmarks/screening_directions.py --data FOLDER

PubMedQA names for each question the answer that the authors' conclusion gives: yes, no or maybe. An
effect as asked is a yes, no clear effect or the opposite a no. The rules were written on the odd
rows; the even ones are what to report.
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
    """Print how often the direction is right, on the half that the rules were written on and on the
    other.
    """
    path = data / "pubmedqa_cases.jsonl"
    if not path.exists():
        raise SystemExit(f"skipped: no pubmedqa_cases.jsonl in {data}")
    cases = [json.loads(line) for line in path.open(encoding="utf-8")]
    for name, half in (("written on", cases[1::2]), ("held out", cases[0::2])):
        table: Counter[tuple[str, str]] = Counter()
        for case in half:
            text = "\n".join(f"{chunk['section']}: {chunk['text']}" for chunk in case["evidence"])
            abstract = Abstract(id=case["id"], text=f"{text}\nCONCLUSIONS: {case['answer']}")
            found = finding(case["query"], abstract).direction
            table[case["labels"]["final_decision"], ANSWERS[found]] += 1
        stated = [
            (label, read)
            for (label, read), count in table.items()
            for _ in range(count)
            if read != "maybe"
        ]
        right = sum(label == read for label, read in stated)
        share = f"right in {right} ({right / len(stated):.1%})"
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
