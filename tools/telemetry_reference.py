"""Generate the table of metrics in docs/running.md from ``metric_catalogue.py``.

python tools/telemetry_reference.py           # writes the table
python tools/telemetry_reference.py --check   # checks whether it is current
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from masis.audit.measures.metric_catalogue import (
    METRICS,
    OF_CALL,
    OF_CRITIQUE,
    OF_ITERATION,
    OF_RUN,
    Metric,
)

PAGE = Path(__file__).resolve().parent.parent / "docs" / "running.md"
BEGIN, END = "<!-- metrics: made by tools/telemetry_reference.py -->\n", "<!-- end of metrics -->\n"


def measured_per(metric: Metric) -> str:
    """Return what a metric is recorded for."""
    if metric in OF_RUN:
        return "each run"
    if metric in OF_ITERATION:
        return "each audited answer"
    return "each original answer or draft" if metric in OF_CRITIQUE else "each call"


def table() -> str:
    """Return the table of all metrics."""
    assert set(METRICS) == {*OF_RUN, *OF_ITERATION, *OF_CRITIQUE, *OF_CALL}
    lines = [
        "| name | kind | unit | meaning | recorded for | source |",
        "|---|---|---|---|---|---|",
    ]
    for metric in METRICS:
        cells = (
            f"`{metric.name}`",
            metric.kind,
            f"`{metric.unit}`",
            metric.description.rstrip("."),
            measured_per(metric),
            metric.spec,
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def page(now: str) -> str:
    """Return the page with its table regenerated.

    Raises:
        ValueError: The page has no marks around the table.

    """
    before, _, rest = now.partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise ValueError(f"{PAGE.name} has no marks around the table")
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


def main() -> int:
    """Write the table or, with --check, compare it."""
    now = PAGE.read_text(encoding="utf-8")
    content = page(now)
    if "--check" in sys.argv:
        return 0 if now == content else 1
    PAGE.write_text(content, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
