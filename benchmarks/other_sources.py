"""Measure the offline checks on kinds of claims not used to develop them: AttributionBench, BEGIN
and QAGS.

    python benchmarks/other_sources.py --data FOLDER
Reads ``nli/pairs.jsonl`` in the folder and prints one JSON object per source.
A pair is a passage and a claim. People labeled whether the passage supports the claim.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import masis

SOURCES = ("AttributionBench", "BEGIN", "QAGS")


def main() -> None:
    """Verify each claim of the sources against its passage, and count by label and verdict."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, required=True, help="the folder that holds nli/pairs.jsonl"
    )
    args = parser.parse_args()
    counts_by_source = {source: Counter[str]() for source in SOURCES}
    with (args.data / "nli" / "pairs.jsonl").open(encoding="utf-8") as rows:
        for line in rows:
            row = json.loads(line)
            source = next((name for name in SOURCES if row["source"].startswith(name)), None)
            if source:
                (check,) = masis.verify_claims([row["hypothesis"]], [row["premise"]])
                is_flagged = check.verdict in ("contradicted", "unsupported")
                verdict = (
                    "confirmed"
                    if check.verdict == "supported"
                    else "flagged"
                    if is_flagged
                    else "open"
                )
                counts_by_source[source][
                    f"{'true' if row['label'] == 0 else 'faulty'} {verdict}"
                ] += 1
    for source, counts in counts_by_source.items():
        print(json.dumps({"source": source, **counts}))


if __name__ == "__main__":
    main()
