"""Ship recorded replies with the demo, and pin the audit results that they give.

    python tools/recorded_audits.py FILE  # copies the replies in FILE into data/replies
    python tools/recorded_audits.py       # writes the results to tests/data/recorded_audits.json

FILE comes from ``masis audit --record``. It must contain a reply for every step of every demo case,
and every step must have a score. The replies are sorted so that the same recording always gives
the same file.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from masis.api.audits import run_audit
from masis.llm import recordings
from masis.llm.recordings import RecordedReply, ReplayFile, RequestKey
from masis.schema.model_ref import REPLAY
from masis.schema.run import Run
from masis.services import demo_cases, recorded_settings
from masis.settings import ROLES, Settings

EXPECTED = ROOT / "tests" / "data" / "recorded_audits.json"


def outcome(run: Run) -> dict[str, Any]:
    """Summarize a recorded audit: the verdicts, issues and scores of each iteration."""
    return {
        "ended": run.termination_reason,
        "best": run.best,
        "needs_review": run.needs_review,
        "reasons": sorted(reason.code for reason in run.review_reasons),
        "iterations": [
            {
                "verdicts": [check.verdict for check in iteration.claims],
                "issues": sorted(f"{issue.severity} {issue.rule}" for issue in iteration.issues),
                "quality": iteration.quality_score,
                "confidence": iteration.critique.confidence,
                "overall": iteration.evaluation.overall_score if iteration.evaluation else None,
            }
            for iteration in run.iterations
        ],
    }


def is_complete(run: Run) -> bool:
    """Return whether every step of a run has a result."""
    return run.termination_reason != "error" and not any(
        iteration.critique.unscored
        or iteration.claim_report.unscored
        or iteration.evaluation is None
        or iteration.evaluation.unscored
        or any(check.verdict == "unscored" for check in iteration.claims)
        for iteration in run.iterations
    )


def ship_replies(file: str) -> None:
    """Write the replies of a recording that the demo cases need."""
    used: dict[str, RecordedReply] = {}
    find = ReplayFile.find

    def find_and_note(self: ReplayFile, request: RequestKey) -> RecordedReply:
        reply = find(self, request)
        used[reply.key] = reply
        return reply

    recordings.ReplayFile.find = find_and_note  # type: ignore[method-assign]
    settings = Settings().model_copy(update=dict.fromkeys(ROLES, f"{REPLAY}{file}"))
    incomplete = [case.id for case in demo_cases() if not is_complete(run_audit(case, settings))]
    if incomplete:
        sys.exit(f"{file} doesn't cover every step of these cases: {', '.join(incomplete)}")
    ordered = sorted(
        used.values(), key=lambda reply: (reply.role, reply.asked, reply.sample, reply.attempt)
    )
    lines = "".join(f"{reply.model_dump_json(exclude_defaults=True)}\n" for reply in ordered)
    recordings.SHIPPED.write_text(lines, encoding="utf-8")
    print(f"{len(ordered)} replies")


def replay_demo_audits(**changes: Any) -> dict[str, Run]:
    """Audit the demo cases with their recorded replies.

    Args:
        changes: Settings that differ from those of the recording.

    Returns:
        The run of each case, by case id.

    """
    settings = recorded_settings(Settings()).model_copy(update=changes)
    return {case.id: run_audit(case, settings) for case in demo_cases()}


def main() -> None:
    """Ship a new recording, or write the expected results of the current one."""
    if len(sys.argv) > 1:
        ship_replies(sys.argv[1])
        return
    EXPECTED.write_text(
        json.dumps(
            {name: outcome(run) for name, run in replay_demo_audits().items()},
            indent=1,
            sort_keys=True,
        )
        + "\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
