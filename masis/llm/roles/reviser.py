"""The reviser with a model, which writes a better answer and lists its changes and the issues they
resolve.

Its description of its own work isn't trusted. Changes, preserved passages and issue ids that the
texts don't confirm are left out of the record, and the loop audits the revised answer from the
start (REQ-CRITIC-008 to REQ-CRITIC-012).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from masis.audit.context import AuditContext
from masis.audit.measures.scores import normalize_score
from masis.audit.text.assertions import is_assertion
from masis.audit.text.quotes import locate_quote
from masis.errors import BadReply, InvalidRevision, ReviserFailed
from masis.llm.roles.prompting import (
    Asker,
    RolePrompt,
    answer,
    compose,
    load,
    question_and_evidence,
    rows,
    without_fences,
)
from masis.llm.roles.replies import ChangeMade, RevisionReply
from masis.schema.audit import (
    AnswerChange,
    ClaimCheck,
    Critique,
    Issue,
    JudgedBy,
    RejectedIssue,
    Revision,
)
from masis.schema.case import Severity
from masis.schema.rules import GROUNDLESS

PROMPT = "reviser"
MIN_TOKENS, MAX_TOKENS = 2_000, 12_000
MAX_ISSUES = 60
"""Maximum number of issues that one revision is asked to resolve, the most serious first; the next
audit finds the rest.
"""
MAX_PRESERVED = 10
"""Maximum number of preserved sentences to record, which are assertions in both answers word for
word.
"""
_BY_SEVERITY: tuple[Severity, ...] = ("critical", "high", "medium", "low")


@dataclass(frozen=True)
class ModelReviser:
    """Improves an answer by resolving its issues. ``version`` is recorded; if it's empty, the
    prompt's version.
    """

    asker: Asker
    temperature: float = 0.3
    version: str = ""

    @property
    def judged_by(self) -> JudgedBy:
        """The model, and the version of the prompt."""
        return JudgedBy(model=self.asker.name, version=self.version or load(PROMPT).version)

    def revise(
        self, context: AuditContext, critique: Critique, issues: Sequence[Issue]
    ) -> Revision:
        """Return a revision, which equals the answer if the model found nothing to improve.

        Raises:
            ProviderFailed: The provider failed (CRITIC-ERR-003).
            ReviserFailed: The model refused (CRITIC-ERR-002).
            InvalidRevision: The reply isn't a revision (CRITIC-ERR-006).

        """
        most = min(MAX_TOKENS, MIN_TOKENS + len(context.answer))
        try:
            reply = self.asker.ask(
                prompt(context, critique, issues, self.asker.control.fence),
                RevisionReply,
                max_tokens=most,
                temperature=self.temperature,
            )
        except BadReply as error:
            failure = ReviserFailed if error.kind == "refused" else InvalidRevision
            raise failure(str(error), raw=error.raw) from error
        return revision(reply, context, issues, self.judged_by)


def prompt(
    context: AuditContext, critique: Critique, issues: Sequence[Issue], mark: str
) -> RolePrompt:
    """Return the reviser's prompt."""
    issue_rows, overview = briefing(context, critique, issues)
    return compose(
        PROMPT,
        mark,
        question_and_evidence(context.query, context.evidence),
        [answer(context.answer), rows("ISSUES", issue_rows), rows("CRITIQUE", [overview])],
    )


def briefing(
    context: AuditContext, critique: Critique, issues: Sequence[Issue]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the most serious issues by position and cause, and the critic's overall view."""
    most_serious = sorted(issues, key=lambda issue: _BY_SEVERITY.index(issue.severity))[:MAX_ISSUES]
    issue_rows = [
        _issue_row(group, context.claims) for group in _group_by_position_and_cause(most_serious)
    ]
    raised = {text for issue in issues for text in (issue.quote, issue.description)}
    overview = {
        "reasoning": critique.critique_reasoning,
        "unsupported_claims": [text for text in critique.unsupported_claims if text not in raised],
        "logical_gaps": [text for text in critique.logical_gaps if text not in raised],
        "conflicting_evidence": critique.conflicting_evidence,
    }
    return issue_rows, overview


def _group_by_position_and_cause(issues: Sequence[Issue]) -> list[list[Issue]]:
    """Group the issues, since citations, claims and critic often find the same fault in the same
    words.
    """
    groups: list[list[Issue]] = []
    for issue in issues:
        for group in groups:
            if any(_is_same_fault(issue, other) for other in group):
                group.append(issue)
                break
        else:
            groups.append([issue])
    return groups


def _is_same_fault(first: Issue, second: Issue) -> bool:
    """Return whether both issues find the same words unsupported, or the same thing missing."""
    if None in (first.start, first.end, second.start, second.end):
        return (
            first.start == second.start
            and first.type == second.type
            and first.description == second.description
        )
    overlap = (first.start or 0) < (second.end or 0) and (second.start or 0) < (first.end or 0)
    groundless = {first.type in GROUNDLESS, second.type in GROUNDLESS}
    return overlap and (groundless == {True} or first.type == second.type)


def _issue_row(group: Sequence[Issue], claims: Sequence[ClaimCheck]) -> dict[str, Any]:
    """Return the row for one fault, with the words of both sides if a claim is contradicted."""
    first = group[0]
    row: dict[str, Any] = {
        "ids": [issue.id for issue in group],
        "severity": first.severity,
        "types": _unique_texts(issue.type for issue in group),
        "descriptions": _unique_texts(issue.description for issue in group),
        "reasons": _unique_texts(issue.reason for issue in group if issue.reason),
        # The suggestion for a contradicted claim is built from words that were only matched, so the
        # words themselves are sent instead (answer_words, evidence_words).
        "suggestions": _unique_texts(
            issue.suggestion
            for issue in group
            if issue.suggestion and issue.rule != "contradicted_claim"
        ),
        "quote": first.quote,
        "evidence_ids": _unique_texts(name for issue in group for name in issue.evidence_ids),
    }
    contradictions = [
        conflict
        for issue in group
        if issue.rule == "contradicted_claim"
        for check in claims
        if (check.claim.start, check.claim.end) == (issue.start, issue.end)
        for conflict in check.contradictions
    ]
    if contradictions:
        row |= {
            "answer_words": contradictions[0].claim_text,
            "evidence_words": contradictions[0].evidence_text,
        }
    return row


def _unique_texts(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))


def revision(
    reply: RevisionReply, context: AuditContext, issues: Sequence[Issue], judged_by: JudgedBy
) -> Revision:
    """Return the reply as a revision.

    Raises:
        InvalidRevision: It has no answer.

    """
    old, new = context.answer, without_fences(reply.revised_answer)
    if not new:
        raise InvalidRevision("the revised answer is empty", raw=reply.model_dump_json())
    if new == old.strip():
        new = old
    ids = {issue.id for issue in issues}
    changes = tuple(
        _to_change(change, ids) for change in reply.changes if _is_in_texts(change, old, new)
    )
    dropped = len(reply.changes) - len(changes)
    note = f" ({dropped} of the changes it named are not in the texts.)" if dropped else ""
    reasons = [
        (name, rejection.reason.strip())
        for rejection in reply.rejected
        for name in rejection.issue_ids
    ]
    asserted = (
        sentence.text.strip()
        for sentence in context.citation_audit.sentences
        if is_assertion(sentence)
    )
    preserved = dict.fromkeys(text for text in asserted if text in new)
    rejected = {name: reason for name, reason in reasons if name in ids and reason}
    addressed = dict.fromkeys(
        name for change in changes for name in change.issue_ids if name not in rejected
    )
    return Revision(
        revised_answer=new,
        changes_explanation=" ".join(filter(None, (change.why.strip() for change in changes)))
        + note,
        updated_confidence=normalize_score("updated_confidence", reply.updated_confidence).value,
        issues_addressed=tuple(addressed),
        preserved_content=tuple(preserved)[:MAX_PRESERVED],
        changes=changes,
        rejected=tuple(
            RejectedIssue(issue_id=name, reason=reason) for name, reason in rejected.items()
        ),
        judged_by=judged_by,
    )


def _is_in_texts(change: ChangeMade, old: str, new: str) -> bool:
    """Return whether the old answer has the replaced words and the new one the new words."""
    before, after = change.before.strip(), change.after.strip()
    if before == after:
        return False
    return (not before or locate_quote(before, old) is not None) and (
        not after or locate_quote(after, new) is not None
    )


def _to_change(change: ChangeMade, ids: set[str]) -> AnswerChange:
    return AnswerChange(
        kind=change.kind,
        before=change.before.strip(),
        after=change.after.strip(),
        why=change.why,
        issue_ids=tuple(dict.fromkeys(name for name in change.issue_ids if name in ids)),
    )
