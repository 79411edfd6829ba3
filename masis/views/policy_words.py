"""The choices of a policy in words, and the scores of a rubric as lines of text."""

from __future__ import annotations

from masis.schema.team import MachineShown, PolicyRule, QueuePolicy, RubricScore, SystemsShown

RULES: dict[PolicyRule, tuple[str, str]] = {
    "adjudicated": (
        "Unanimous verdict, otherwise adjudication",
        (
            "Reviewers agree if they give the same verdict on the same answer or correction. Every"
            " disagreement takes a lead's time. Adjudicators give a reason unless they approve as"
            " a reviewer did."
        ),
    ),
    "agree": (
        "Verdict that enough of them agree on, otherwise adjudication",
        (
            "Needs fewer adjudications. If this many reviewers give the same verdict and answer,"
            " they settle the case and outvote the others."
        ),
    ),
    "first": (
        "First decision; the others measure agreement",
        (
            "Needs no adjudication. One person settles each case. The other decisions show how"
            " reliable that is."
        ),
    ),
}
ALL_OF_THEM = "This is the same as the rule above, because {0} of {0} reviewers are all of them."
SYSTEMS: dict[SystemsShown, tuple[str, str]] = {
    "always": ("Always", "The Review and Compare pages show which system gave each answer."),
    "after": (
        "After their preference",
        (
            "Until a reviewer has decided all pairs of a question on the Preference page, Compare"
            " doesn't show its answers and Review doesn't name the system."
        ),
    ),
}
MACHINE: dict[MachineShown, tuple[str, str]] = {
    "first": (
        "At once",
        (
            "Fastest. Reviewers who see a verdict tend to agree with it, so their agreement says"
            " little about its quality."
        ),
    ),
    "after": (
        "After their own decision",
        (
            "Slower, because they read without marks. Their decisions measure the quality of the"
            " audit, which the Trust page needs."
        ),
    ),
    "never": (
        "Not before the case is decided",
        (
            "Slowest, because they can't use the audit to correct themselves. Their decisions also"
            " measure how far reviewers agree without help."
        ),
    ),
}
"""The values of the policy's choices, each with its label and its costs and benefits."""

RUBRIC_HELP = "One score per line: name: 1-5, or name: word, word. Guidance can follow after a |."


def rule_text(policy: QueuePolicy) -> str:
    """Say which verdict counts if several people decide a case."""
    if policy.rule == "first":
        return "the first decision"
    agreeing = f"{policy.agree} of {policy.reviewers}" if policy.rule == "agree" else "all"
    return f"the one that {agreeing} agree on, otherwise an adjudication"


def read_scores(lines: str) -> tuple[RubricScore, ...]:
    """Parse scores from lines in the format of ``RUBRIC_HELP``.

    Raises:
        ValueError: A line isn't a score. The message quotes it.

    """
    scores = []
    for line in filter(str.strip, lines.splitlines()):
        definition, _, guidance = line.partition("|")
        name, colon, values = definition.rpartition(":")
        low, dash, high = (part.strip() for part in values.partition("-"))
        if not colon or not name.strip():
            raise ValueError(f"“{line.strip()[:80]}” isn't a score. {RUBRIC_HELP}")
        content: dict[str, object] = {"name": name.strip(), "guidance": guidance.strip()}
        if dash and low.isdecimal() and high.isdecimal():
            content |= {"low": int(low), "high": int(high)}
        else:
            content["categories"] = tuple(
                word.strip() for word in values.split(",") if word.strip()
            )
        scores.append(RubricScore.model_validate(content))
    return tuple(scores)


def score_line(score: RubricScore) -> str:
    """Return a score as a line that ``read_scores`` can parse."""
    values = ", ".join(score.categories) if score.categories else f"{score.low}-{score.high}"
    return f"{score.name}: {values}" + (f" | {score.guidance}" if score.guidance else "")
