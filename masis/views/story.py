"""Describes a run as a whole: the chosen answer, why the run ended, and its problems. Pure."""

from __future__ import annotations

from typing import NamedTuple

from masis.audit.acceptance import RULE_VERSION
from masis.schema.judge import JudgeUse
from masis.schema.rules import CHECKS
from masis.schema.run import Iteration, Run
from masis.schema.wording import count_noun
from masis.settings import OFFLINE
from masis.views.numbers import score_text
from masis.views.spending import escalation_text, spent_by_role
from masis.views.words import REASON, ending_text, model_words

OFFLINE_TEXT = (
    "No language model was used: rules and measurements judged this answer. They support English."
)
MOST_WARNINGS = 12


class StoryRow(NamedTuple):
    """One row of the story: a title, its lines, and a tone ("" or "warning")."""

    title: str
    lines: list[str]
    tone: str = ""


def story(run: Run, shown: int, exam: str = "") -> list[StoryRow]:
    """Return the story of a run, with the critic's words on iteration ``shown`` (from 0).

    ``exam`` is the line that says whether the judging models passed the exam.
    """
    critique = run.iterations[shown].critique
    reasoning = (
        f"Unscored: {critique.unscored.reason}"
        if critique.unscored
        else critique.critique_reasoning
    )
    rows = [
        StoryRow("Suggested" if run.best else "Chosen", [final_answer_text(run)]),
        StoryRow("Ended", [end_text(run)]),
        (
            StoryRow("Acceptance", [earlier_rule_text(run)])
            if run.acceptance.rule != RULE_VERSION
            else None
        ),
        StoryRow("Checks passed", checks_passed(run)) if not run.needs_review else None,
        StoryRow("Judged by", [judges_text(run)]),
        StoryRow("House rules", [judge_version_text(run.judge)]) if run.judge else None,
        StoryRow("Exam", [f"{exam[:1].upper()}{exam[1:]}."]) if exam else None,
        StoryRow("Claims decided", [escalation_text(run.escalation)]) if run.escalation else None,
        StoryRow("Verifier file", verifier_files(run)) if run.versions.local_models else None,
        StoryRow("Spent", spent_by_role(run)) if run.calls else None,
        (
            StoryRow(f"The critic on iteration {shown + 1}", [reasoning, *critique.notes])
            if reasoning
            else None
        ),
        StoryRow("Warnings", _warning_lines(run), "warning") if run.warnings else None,
    ]
    return [row for row in rows if row]


def judge_version_text(judge: JudgeUse) -> str:
    """Name the judge version of a run, and how many examples the critic was shown."""
    examples = count_noun(len(judge.examples), "example") if judge.examples else "no examples"
    return f"Judge version {judge.name} ({judge.digest}), {examples}."


def verifier_files(run: Run) -> list[str]:
    """List the model files that judged on this machine, with license and digest."""
    return [
        f"{model.file} ({model.licence or 'license not stated'}, sha256 {model.sha256[:12]})"
        for model in run.versions.local_models
    ]


def earlier_rule_text(run: Run) -> str:
    """Say that an earlier acceptance rule judged this run, and how to apply the current one."""
    judged = "said that it needs review" if run.needs_review else "accepted it"
    return (
        f"Acceptance rule {run.acceptance.rule} {judged}; the current rule is {RULE_VERSION}. To"
        " apply the current rule to all stored audits, use Reassess on the Health page or `masis db"
        " reassess`."
    )


def checks_passed(run: Run) -> list[str]:
    """List the checks behind an auto-acceptance with their results.

    Checks whose reasons a guarantee waived did not pass; the last line names these reasons instead.
    """
    # The stored detail of the ending is a code, which is replaced by its words.
    details = {check.name: check.detail for check in run.acceptance.checks if check.passed}
    if "ending" in details:
        details["ending"] = run_ending_text(run)
    passed = [f"{CHECKS[name]}: {detail}" for name, detail in details.items()]
    if run.acceptance.guarantee is None:
        return passed
    waived = ", ".join(REASON[code].text for code in run.acceptance.waived)
    return [*passed, f"Not passed, waived by guarantee {run.acceptance.guarantee}: {waived}"]


def review_messages(run: Run) -> list[str]:
    """List the reasons for review: first what is wrong, then what couldn't be certified."""
    return [
        reason.message
        # sorted is stable, so reasons of one tier stay in their order.
        for reason in sorted(run.review_reasons, key=lambda reason: reason.tier != "must_look")
    ]


def failure_message(run: Run) -> str:
    """Return the technical message of an audit that ended with an error, or "" for other audits."""
    failed = any(reason.code == "error" for reason in run.review_reasons)
    return run.warnings[-1].message if failed and run.warnings else ""


def no_issues_text(iteration: Iteration) -> str:
    """Explain an iteration without issues, claiming no more than was checked."""
    if iteration.critique.unscored is not None and iteration.claims:
        return (
            "No issues were found, but the critique has no result, so it is unknown what it would"
            " have raised."
        )
    if all(
        check.verdict in ("unverifiable", "unscored") and check.support is None
        for check in iteration.claims
    ):
        return (
            "No issues were found, because no claim of the answer could be checked against the"
            " evidence."
        )
    checks = "offline checks" if iteration.critique.judged_by.model == OFFLINE else "checks"
    if undecided := sum(
        check.verdict in ("unverifiable", "unscored") for check in iteration.claims
    ):
        claims = f"{undecided} of {count_noun(len(iteration.claims), 'claim')}"
        return f"No issues found by the {checks}, which could not confirm {claims}."
    return (
        f"No issues found by the {checks}: every checked sentence is cited, and its evidence"
        " supports it."
    )


def final_answer_text(run: Run) -> str:
    """Say which iteration's answer is the final one, and why."""
    best = run.best_iteration
    if best is None:
        return "No iteration was finished, so no answer was chosen."
    number = best.iteration_number
    if len(run.iterations) == 1:
        return "Iteration 1, the only one."
    if best.quality_score is None:
        return f"Iteration {number}, the original answer: no iteration could be scored."
    others = [
        f"{score_text(it.quality_score)} in iteration {it.iteration_number}"
        for it in run.iterations
        if it is not best
    ]
    higher = [it for it in run.iterations if (it.quality_score or 0.0) > best.quality_score]
    if higher:
        return (
            f"Iteration {number}, quality {score_text(best.quality_score)} against"
            f" {' and '.join(others)}: a revision of higher quality has more serious issues, or"
            " lost supported claims or their citations."
        )
    tied = [
        it for it in run.iterations if it is not best and it.quality_score == best.quality_score
    ]
    why = "the earliest of those with the highest quality" if tied else "it has the highest quality"
    return (
        f"Iteration {number}: {why}, {score_text(best.quality_score)} against"
        f" {' and '.join(others)}."
    )


def end_text(run: Run) -> str:
    """Say why the loop ended; after a single iteration, why nothing was revised."""
    if len(run.iterations) == 1 and run.termination_reason == "no_issues":
        return (
            "After 1 iteration: the checks found no issue of severity high or critical, so nothing"
            " was revised. Less serious issues and unconfirmed claims don't cause a revision."
        )
    if len(run.iterations) == 1 and run.termination_reason == "max_iterations":
        return (
            "After 1 iteration: the settings of this audit allow no revision (max_iterations = 1)."
        )
    if len(run.iterations) == 1 and run.termination_reason == "convergence":
        last = run.iterations[0].revision
        why = f" {last.changes_explanation}" if last and last.changes_explanation else ""
        return f"After 1 iteration: the reviser was asked for a revision and changed nothing.{why}"
    return f"After {count_noun(len(run.iterations), 'iteration')}, because {run_ending_text(run)}."


def run_ending_text(run: Run) -> str:
    """Return why an audit ended, as it follows after "because"."""
    last_change = run.iterations[-1].improvement_delta if run.iterations else None
    return ending_text(run.termination_reason, last_change)


def may_revise_anyway(run: Run) -> bool:
    """Return whether a person can still request a revision, because the audit made none."""
    return len(run.iterations) == 1 and run.termination_reason in ("no_issues", "max_iterations")


def judges_text(run: Run) -> str:
    """Say which models judged, and in which roles."""
    roles: dict[str, list[str]] = {}
    for role, model in run.models.items():
        roles.setdefault(model_words(model), []).append(role)
    if set(roles) == {OFFLINE}:
        return OFFLINE_TEXT
    return "; ".join(f"{model} ({', '.join(filled)})" for model, filled in roles.items()) + "."


def _warning_lines(run: Run) -> list[str]:
    lines = []
    for warning in run.warnings[:MOST_WARNINGS]:
        where = [
            warning.step or "",
            f"iteration {warning.iteration}" if warning.iteration else "",
            warning.code or "",
        ]
        place = ", ".join(part for part in where if part)
        lines.append(f"{warning.message} ({place})" if place else warning.message)
    more = len(run.warnings) - MOST_WARNINGS
    return [*lines, f"and {more} more"] if more > 0 else lines
