"""Write the table of metrics in docs/running.md from the one in code
(``masis/audit/measures/metric_catalogue.py``).

python tools/telemetry_reference.py           # writes it
python tools/telemetry_reference.py --check   # says whether it is current
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


def taken(metric: Metric) -> str:
    """What a metric is taken of, in a word."""
    if metric in OF_RUN:
        return "each run"
    if metric in OF_ITERATION:
        return "each audited answer"
    return "each original answer or draft" if metric in OF_CRITIQUE else "each call"


def table() -> str:
    """All metrics as a table."""
    assert set(METRICS) == {*OF_RUN, *OF_ITERATION, *OF_CRITIQUE, *OF_CALL}
    lines = ["| name | kind | unit | what | taken of | asked for by |", "|---|---|---|---|---|---|"]
    for metric in METRICS:
        cells = (
            f"`{metric.name}`",
            metric.kind,
            f"`{metric.unit}`",
            metric.description.rstrip("."),
            taken(metric),
            metric.spec,
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def page(now: str) -> str:
    """The page with its table regenerated. Raises ValueError where it has lost the
    marks around it.
    """
    before, _, rest = now.partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise ValueError(f"{PAGE.name}: the marks around the table are gone")
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


def main() -> int:
    """Write or check."""
    now = PAGE.read_text(encoding="utf-8")
    made = page(now)
    if "--check" in sys.argv:
        return 0 if now == made else 1
    PAGE.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
