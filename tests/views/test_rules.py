"""The table of rules, and what is made from it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import get_args

from masis.schema.rules import (
    FLAGS,
    ISSUE_TYPES,
    KINDS,
    REVIEW_CODES,
    RULES,
    IssueType,
    ReviewCode,
)
from tools import issue_rules

ROOT = Path(__file__).resolve().parent.parent.parent

NEW_RULE = """
from masis.schema.rules import CHECKS, KINDS, RULES, IssueRule, Kind

CHECKS["editions"] = "Editions"
KINDS["stale"] = Kind("stale source", "stale sources", "warn")
RULES["stale_source"] = IssueRule(
    "stale source",
    "warn",
    "Cites an edition that a newer one replaced",
    "stale",
    "outdated",
    "high",
    flag="stale",
    review_code="safety",
)

from masis import run_audit
from masis.audit.acceptance import flagged_reasons
from masis.schema.run import AcceptanceCheck
from masis.store.audits.runs import faults
from masis.ui.shell.address import DRAWER
from masis.views.headline import headline
from masis.views.story import checks_passed
from masis.views.tables import runs_to_pandas
from masis.views.words import FLAG, ISSUES, rule_word
from tests.audit import factories
from tests.cases import case_of
from tools.issue_rules import lines

sentence = "The bridge is 120 metres long"
run = run_audit(case_of(f"{sentence} [c1].", {"c1": f"{sentence}."}))
issue = factories.issue(
    "high",
    source="claims",
    type="outdated",
    rule="stale_source",
    description="The 1931 edition.",
    reason="",
    suggestion="",
)
first = run.iterations[0].model_copy(update={"issues": (issue, issue)})
run = run.model_copy(update={"iterations": (first,)})

line = headline(run)
assert (line.text, line.kind, line.tone) == ("The 1931 edition", "stale", "warn"), line
assert line.others == "1 more stale source", line.others
assert rule_word("stale_source").meaning == "Cites an edition that a newer one replaced"
assert FLAG["stale"].text == "stale source" and "stale" in ISSUES
assert faults(first)[-1] == "stale", faults(first)
(flag_filter,) = [entry for entry in DRAWER if entry.name == "flag"]
assert flag_filter.options["stale"] == "stale source"
assert "safety" in {reason.code for reason in flagged_reasons(first)}
assert set(runs_to_pandas(run, "issues")["rule"]) == {"stale_source"}
assert set(runs_to_pandas(run)["headline"]) == {line.text}
assert [line for line in lines() if line.startswith("| `stale_source` | stale source |")]
check = AcceptanceCheck(name="editions", passed=True, detail="all are current")
run = run.model_copy(
    update={"acceptance": run.acceptance.model_copy(update={"checks": (check,)})}
)
assert checks_passed(run)[0] == "Editions: all are current"
"""


def test_a_new_row_is_all_that_a_new_rule_needs() -> None:
    """The row is added in a process of its own, before the modules that read the table."""
    done = subprocess.run(
        [sys.executable, "-c", NEW_RULE], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_every_type_and_reason_has_a_row_and_every_row_refers_to_another() -> None:
    assert tuple(ISSUE_TYPES) == get_args(IssueType)
    assert set(REVIEW_CODES) == set(get_args(ReviewCode))
    assert {rule.kind for rule in RULES.values()} <= set(KINDS)
    assert {rule.type for rule in RULES.values()} <= set(ISSUE_TYPES)
    assert {rule.flag for rule in RULES.values()} - {""} <= set(FLAGS)
    assert {rule.review_code for rule in RULES.values()} - {None} <= set(REVIEW_CODES)
    assert all(kind.one and kind.many for name, kind in KINDS.items() if name != "nothing")


def test_the_docs_print_the_table_of_rules() -> None:
    page = issue_rules.PAGE.read_text(encoding="utf-8")
    assert issue_rules.update_page(page) == page
