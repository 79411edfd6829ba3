"""Let the offline rules take the exam, and write the results that ship with the product.

    python tools/ship_exams.py           the offline rules take the exam; other results stay
    python tools/ship_exams.py FILE      also takes the results in FILE, written by masis models exam

Run it after every change of the offline rules or of the exam: a test compares what is stored with
the exam taken now. Of the results of one model the newest is kept.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from masis.api.exam_results import SHIPPED
from masis.bench.exam import exam_settings, take_exam
from masis.schema.exam import ExamResult
from masis.settings import OFFLINE, Settings

FILE = ROOT / "masis" / "api" / SHIPPED


def main(files: list[str]) -> int:
    """Write the file anew. Exit code 1 if the offline rules don't pass."""
    result = take_exam(exam_settings(Settings(), OFFLINE))
    assert result is not None
    lines = [
        line for file in (FILE, *map(Path, files)) for line in file.read_text("utf-8").splitlines()
    ]
    results = {stored.name: stored for stored in map(ExamResult.model_validate_json, lines)}
    results[result.name] = result
    written = (results[name].model_dump_json() + "\n" for name in sorted(results))
    FILE.write_text("".join(written), encoding="utf-8")
    for name in sorted(results):
        verdict = "passed" if results[name].passed else "; ".join(results[name].shortfalls)
        print(f"{FILE.relative_to(ROOT)}: {name}: {verdict}")
    return 0 if result.passed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
