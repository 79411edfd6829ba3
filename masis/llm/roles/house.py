"""What a team adds to the critic's prompt: house rules, severities and decided cases as examples.

The default prompts don't contain it, so that they stay the same, byte for byte, for every audit
without a judge version, with their version, their exams and their recorded replies. The
instructions are in ``house_rules.md``, beside the folder that the version of the prompts covers.

Rules and examples are in fences of rows, one JSON record in a line. The answers in examples are
from outside, and one of them may imitate a rule, a fence or a reply. It can't leave its string, and
the mark of the fences occurs in none of them (``prompting.unforgeable``).
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from masis.llm.roles.prompting import RolePrompt, Section, rows
from masis.schema.judge import HouseRule, JudgeBrief, JudgeExample
from masis.schema.wording import shorten

VERSION = 1
"""Increase this with a change of the instructions, or of what the sections have."""

MAX_QUESTION, MAX_ANSWER, MAX_REASON = 500, 1_500, 600
"""Maximum number of characters of an example that are sent."""

_FILE = Path(__file__).parent / "house_rules.md"


@cache
def house_version() -> str:
    """Return the version of the instructions for house rules, ``house/1+3f2a9c1b``."""
    digest = hashlib.sha256(_FILE.read_bytes()).hexdigest()[:8]
    return f"house/{VERSION}+{digest}"


@cache
def house_instructions() -> str:
    """Return the instructions that follow those of the critic."""
    return _FILE.read_text(encoding="utf-8").strip()


def tells_critic(brief: JudgeBrief) -> bool:
    """Return whether the critic's prompt has house instructions.

    It depends on the content alone and not on the examples that were found for the case, so that
    all audits by one version have the same version of the prompt.
    """
    content = brief.content
    has_rules = any(rule.check is None for rule in content.rules)
    return has_rules or bool(content.severities or content.shows_examples)


def house_sections(brief: JudgeBrief) -> tuple[Section, ...]:
    """Return the sections of a brief that have rows, without rules that code checks."""
    content = brief.content
    for_model = [rule for rule in content.rules if rule.check is None]
    tables = (
        ("HOUSE_RULES", [_rule_row(rule) for rule in for_model]),
        (
            "SEVERITIES",
            [
                {"type": row.type, "severity": row.severity}
                | ({"reason": row.reason} if row.reason else {})
                for row in content.severities
            ],
        ),
        ("EXAMPLES", [_example_row(example) for example in brief.examples]),
    )
    return tuple(rows(name, values) for name, values in tables if values)


def with_house_instructions(prompt: RolePrompt) -> RolePrompt:
    """Return the critic's prompt with the instructions for house rules, and both versions."""
    return prompt._replace(
        instructions=f"{prompt.instructions}\n\n{house_instructions()}",
        version=f"{prompt.version} {house_version()}",
    )


def house_characters(brief: JudgeBrief) -> int:
    """Return how many characters a brief adds to each call of the critic."""
    if not tells_critic(brief):
        return 0
    sections = house_sections(brief)
    return len(house_instructions()) + sum(len(section.text) for section in sections)


def _rule_row(rule: HouseRule) -> dict[str, Any]:
    severity = {"severity": rule.severity} if rule.severity else {}
    return {"id": rule.id, "force": rule.force, **severity, "sentence": rule.sentence}


def _example_row(example: JudgeExample) -> dict[str, Any]:
    named = "breaks_rule" if example.breaks else "follows_rule"
    return {
        "question": shorten(example.query, MAX_QUESTION),
        "answer": shorten(example.answer, MAX_ANSWER),
        "verdict": example.verdict,
        "reason": shorten(example.reason, MAX_REASON),
        **({named: example.rule} if example.rule else {}),
    }
