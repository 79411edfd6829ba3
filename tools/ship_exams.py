"""Let the offline rules take the exam, and write the result that ships with the product.

    python tools/ship_exams.py

Run it after every change of the offline rules or of the exam: a test compares what is stored with
the exam taken now.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from masis.api.exam_results import SHIPPED
from masis.bench.exam import exam_settings, take_exam
from masis.settings import OFFLINE, Settings

FILE = ROOT / "masis" / "api" / SHIPPED


def main() -> int:
    """Write the file anew. Exit code 1 if the offline rules don't pass."""
    result = take_exam(exam_settings(Settings(), OFFLINE))
    assert result is not None
    FILE.write_text(result.model_dump_json() + "\n", encoding="utf-8")
    print(
        f"{FILE.relative_to(ROOT)}: {'passed' if result.passed else '; '.join(result.shortfalls)}"
    )
    return 0 if result.passed else 1


if __name__ == "__main__":
    sys.exit(main())
