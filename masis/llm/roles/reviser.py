"""The reviser with a model: a better answer, with what it changed, what it kept and which issues it took up.

Nothing it says of its own work is trusted: changes, kept passages and issue ids that the texts don't confirm are left
out of the record, and the loop audits the revised answer from the start (REQ-CRITIC-008 to REQ-CRITIC-012).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from masis.audit.context import AuditContext
from masis.audit.quotes import located
from masis.audit.scores import normalised
from masis.errors import BadReply, InvalidRevision, ReviserFailed
from masis.llm.roles.prompting import Asker, Prompt, answer, compose, load, question_and_evidence, rows, without_fences
from masis.llm.roles.replies import ChangeMade, RevisionReply
from masis.schema.audit import Change, Critique, Issue, JudgedBy, Revision
from masis.schema.case import Severity

PROMPT = "reviser"
TOKENS_LEAST, TOKENS_MOST = 2_000, 12_000
ISSUES_MOST = 60
"""Issues that one revision is asked to take up, the most serious; the re-audit finds what is left."""
_GRAVITY: tuple[Severity, ...] = ("critical", "high", "medium", "low")


@dataclass(frozen=True)
class ModelReviser:
    """Improves an answer on the issues found."""

    asker: Asker
    temperature: float = 0.3

    @property
    def judged_by(self) -> JudgedBy:
        """The model, and the version of the prompt."""
        return JudgedBy(model=self.asker.name, version=load(PROMPT).version)

    def revise(self, context: AuditContext, critique: Critique, issues: Sequence[Issue]) -> Revision:
        """A revision; equal to the answer where the model found nothing to improve.

        Raises ProviderFailed (CRITIC-ERR-003), ReviserFailed (002, refused) or InvalidRevision (006, no revision).
        """
        most = min(TOKENS_MOST, TOKENS_LEAST + len(context.answer))
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


def prompt(context: AuditContext, critique: Critique, issues: Sequence[Issue], mark: str) -> Prompt:
    """What the reviser is sent."""
    found, view = briefing(critique, issues)
    return compose(
        PROMPT,
        mark,
        question_and_evidence(context.query, context.evidence),
        [answer(context.answer), rows("ISSUES", found), rows("CRITIQUE", [view])],
    )


def briefing(critique: Critique, issues: Sequence[Issue]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the most serious issues, a row each, and the critic's view of the whole, as the reviser gets them."""
    most_serious = sorted(issues, key=lambda issue: _GRAVITY.index(issue.severity))[:ISSUES_MOST]
    found = [
        {
            "id": issue.id,
            "severity": issue.severity,
            "type": issue.type,
            "description": issue.description,
            "reason": issue.reason,
            "suggestion": issue.suggestion,
            "quote": issue.quote,
            "evidence_ids": issue.evidence_ids,
        }
        for issue in most_serious
    ]
    view = {
        "reasoning": critique.critique_reasoning,
        "unsupported_claims": critique.unsupported_claims,
        "logical_gaps": critique.logical_gaps,
        "conflicting_evidence": critique.conflicting_evidence,
    }
    return found, view


def revision(reply: RevisionReply, context: AuditContext, issues: Sequence[Issue], judged_by: JudgedBy) -> Revision:
    """The reply as a revision. Raises InvalidRevision where it holds no answer."""
    old, new = context.answer, without_fences(reply.revised_answer)
    if not new:
        raise InvalidRevision("the revised answer is empty", raw=reply.model_dump_json())
    if new == old.strip():
        new = old
    ids = {issue.id for issue in issues}
    changes = tuple(_change(made, ids) for made in reply.changes if _borne_out(made, old, new))
    lost = len(reply.changes) - len(changes)
    note = f" ({lost} of the changes it named are not in the texts.)" if lost else ""
    return Revision(
        revised_answer=new,
        changes_explanation=reply.changes_explanation.strip() + note,
        updated_confidence=normalised("updated_confidence", reply.updated_confidence).value,
        issues_addressed=tuple(dict.fromkeys(name for name in reply.issues_addressed if name in ids)),
        preserved_content=tuple(
            dict.fromkeys(
                kept for kept in reply.preserved_content if located(kept, old) is not None and located(kept, new)
            )
        ),
        changes=changes,
        judged_by=judged_by,
    )


def _borne_out(made: ChangeMade, old: str, new: str) -> bool:
    """Whether the change can be seen: what it replaced stood in the old answer, what it put in stands in the new."""
    before, after = made.before.strip(), made.after.strip()
    if before == after:
        return False
    return (not before or located(before, old) is not None) and (not after or located(after, new) is not None)


def _change(made: ChangeMade, ids: set[str]) -> Change:
    return Change(
        kind=made.kind,
        before=made.before.strip(),
        after=made.after.strip(),
        why=made.why,
        issue_ids=tuple(dict.fromkeys(name for name in made.issue_ids if name in ids)),
    )
