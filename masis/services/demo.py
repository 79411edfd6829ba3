"""The demo cases, the settings that audit them with recorded replies, and the decisions simulated on some of them."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from pathlib import Path

from masis.datasets.loading import read_cases
from masis.schema.calls import DEMO_REPLIES, REPLAY
from masis.schema.case import Case
from masis.schema.review import Decision
from masis.schema.team import QueuePolicy
from masis.settings import ROLES, Settings
from masis.store import Store
from masis.version import app_root


def demo_case_files() -> list[Path]:
    """The files of the demo cases, by name."""
    return sorted((app_root() / "data" / "cases").glob("*.jsonl"))


def demo_cases() -> Iterable[Case]:
    """The demo cases, file by file."""
    for file in demo_case_files():
        yield from read_cases(file)


def recorded_settings(settings: Settings) -> Settings:
    """These settings with the demo's recorded replies in every role: what its cases are audited with."""
    return settings.model_copy(update=dict.fromkeys(ROLES, f"{REPLAY}{DEMO_REPLIES}"))


SIMULATED_REVIEWERS = ("Simulated reviewer 1", "Simulated reviewer 2")
_DECIDED = re.compile(r"-0[2467]-")
"""Cases that the simulated reviewers decide: these numbers of each subject, so that most are left to review."""
MISTAKEN = 0.12
"""How often a simulated reviewer gives another verdict than the gold labels of a case."""


def simulate_reviews(store: Store) -> int:
    """Append simulated decisions, two a case, on demo cases that nobody has decided; returns how many.

    They follow the gold labels with a recorded share of mistakes, are made blind, and say everywhere what they are: the
    reviewer's name and ``extra["simulated"]``. Exports leave them out. Once done, nothing is added.
    """
    policy = store.team.in_force(QueuePolicy)
    waiting = [case for case in demo_cases() if _DECIDED.search(case.id) and _may_simulate(store, case)]
    if not waiting:
        return 0
    made = 0
    with store.transaction():
        shared = {"reviewers": 2, "share": 1.0, "rule": "first", "machine": "never"}
        store.team.put("MASIS demo", policy.model_copy(update=shared))
        for case in waiting:
            summary = store.cases.summary(case.id)
            for name in SIMULATED_REVIEWERS:
                store.decisions.append(_simulated(case, name, summary.run_id))
                made += 1
        store.team.put("MASIS demo", policy)
    return made


def _gold(case: Case) -> object:
    """Return whether a demo case is free of faults by its gold labels; None where they don't say."""
    return case.labels.model_dump().get("clean") if case.labels else None


def _may_simulate(store: Store, case: Case) -> bool:
    """Return whether a case has gold labels, an audit, and neither a decision nor somebody at work on it."""
    gold = _gold(case)
    state = store.cases.summary(case.id).state
    return isinstance(gold, bool) and state in ("needs_review", "accepted") and not store.team.work(case.id).decided_by


def _simulated(case: Case, name: str, run_id: str | None) -> Decision:
    draws = random.Random(f"{name}:{case.id}")
    sound = bool(_gold(case)) != (draws.random() < MISTAKEN)
    return Decision(
        reviewer=name,
        case_id=case.id,
        run_id=run_id,
        iteration=1,
        verdict="approve" if sound else "reject",
        reason="" if sound else "Says more than the evidence",
        note="Simulated for the demo",
        token=f"simulated:{case.id}:{name}",
        extra={"simulated": True, "seconds": round(draws.lognormvariate(4, 0.5), 1)},
    )
