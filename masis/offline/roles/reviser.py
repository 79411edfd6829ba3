"""The reviser without a model: it changes only what is certain, adds no sentence and explains each
change.

Certain are three things. A reference that names no evidence or the wrong chunk gives way to the
chunk that the sentence is a copy of; where it is a copy of none, or of several, ``[citation
needed]`` takes the place of a fabricated reference and its issue stays open. A figure that the
evidence contradicts gives way to the evidence's where the sentence is then a copy of the evidence:
in any other sentence the figure may be of something else, or calculated. A sentence that instructs
its reader goes. All other words stay as they are, whatever was found about them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from masis.audit.citations import CITATION_NEEDED
from masis.audit.citations.engine import audit_citations
from masis.audit.context import AuditContext
from masis.audit.markers import SQUARE_BRACKETS, MarkerStyle, style_of_marker, words_of_marker
from masis.audit.text.assertions import citations_by_sentence
from masis.audit.text.comparison import quotation_key
from masis.offline.checks.figures import says_in_the_same_words
from masis.offline.matching.key_points import JUDGED_BY, index_of, lead_of
from masis.offline.roles.drafter import NOTHING_FOUND
from masis.schema.audit import (
    AnswerChange,
    ChangeKind,
    Citation,
    CitationAudit,
    ClaimCheck,
    Contradiction,
    Critique,
    Issue,
    Revision,
    Sentence,
)
from masis.schema.case import Evidence
from masis.schema.rules import RULES, rule_of
from masis.schema.wording import shorten

NOTHING_SAFE = "There is nothing the offline reviser can safely change."
FIGURES = ("number", "unit", "date")
"""Kinds of contradiction that the evidence's own value repairs; a name may belong to
somebody else.
"""

_LEAD = re.compile(r"[ \t]*(?:[-*•–+]|\d{1,3}[.)]|[a-z][.)])[ \t]+$")
_IN_OR_ON = re.compile(r"\b(in|on)\s+$", re.IGNORECASE)
_DAY = re.compile(r"\b\d{1,2}(?:st|nd|rd|th)?\b")


class AnswerEdit(NamedTuple):
    """``answer[start:end]`` becomes ``text``; ``why`` explains it, ``rules`` are those whose issues
    it ends.
    """

    start: int
    end: int
    text: str
    kind: ChangeKind
    why: str
    rules: tuple[str, ...] = ()


class OfflineReviser:
    """Revises by rule; never states what no chunk states."""

    def revise(
        self, context: AuditContext, critique: Critique, issues: Sequence[Issue]
    ) -> Revision:
        """Return the answer with what is certain corrected; the same answer where nothing is."""
        flagged = {
            chunk for issue in issues if _is_instruction(issue) for chunk in issue.evidence_ids
        }
        trusted = tuple(chunk for chunk in context.evidence if chunk.id not in flagged)
        style = citing_style(context.answer, context.citation_audit, context.evidence)
        inside = citations_by_sentence(context.citation_audit)
        found = _issues_by_sentence(issues, context.citation_audit.sentences)
        checks: dict[int | None, list[ClaimCheck]] = defaultdict(list)
        for check in context.claims:
            checks[check.claim.sentence].append(check)
        edits: list[AnswerEdit] = []
        changes: list[AnswerChange] = []
        preserved: list[str] = []
        for number, sentence in enumerate(context.citation_audit.sentences):
            reviser = _SentenceReviser(
                context.answer, sentence, inside[number], checks[number], trusted, style
            )
            made = reviser.edits(found[number])
            edits += made
            if made:
                changes.append(_sentence_change(sentence, made, found[number]))
            else:
                preserved.append(sentence.text)
        return Revision(
            revised_answer=(
                apply_edits(context.answer, edits) or NOTHING_FOUND if edits else context.answer
            ),
            changes_explanation=_explain_changes(changes),
            updated_confidence=None,
            issues_addressed=tuple(
                dict.fromkeys(issue for change in changes for issue in change.issue_ids)
            ),
            preserved_content=tuple(preserved),
            changes=tuple(changes),
            judged_by=JUDGED_BY,
        )


@dataclass(frozen=True)
class _SentenceReviser:
    """What is certain about one sentence. ``evidence`` may be cited: none of it instructs its
    reader.
    """

    answer: str
    sentence: Sentence
    citations: Sequence[Citation]
    checks: Sequence[ClaimCheck]
    evidence: tuple[Evidence, ...]
    style: CitingStyle

    def edits(self, issues: Sequence[Issue]) -> list[AnswerEdit]:
        if any(map(_is_instruction, issues)):
            rules = tuple(issue.rule for issue in issues)
            why = "It instructs its reader instead of answering."
            return [AnswerEdit(self.sentence.start, self.sentence.end, "", "dropped", why, rules)]
        figures = [edit for check in self.checks for edit in self._figures(check)]
        if figures and not self._is_said(self._statement(figures)):
            figures = []  # it was no copy but for the figure
        return [*figures, *self._references(figures)]

    def _is_said(self, statement: str) -> bool:
        """Return whether the evidence has the statement in the same words, and nothing that
        contradicts it.
        """
        if index_of(self.evidence).assess(statement).verdict == "contradicted":
            return False
        return any(says_in_the_same_words(chunk.text, statement) for chunk in self.evidence)

    def _figures(self, check: ClaimCheck) -> Iterator[AnswerEdit]:
        """Yield the evidence's value for each contradicted figure that it has exactly one for."""
        if check.verdict != "contradicted" or check.claim.start is None:
            return
        candidates: dict[tuple[int, int], list[Contradiction]] = defaultdict(list)
        for found in check.contradictions:
            figures = all(
                any(map(str.isdigit, each)) for each in (found.claim_text, found.evidence_text)
            )
            # a model states a contradiction without a kind
            if found.evidence_text and (
                found.kind in FIGURES or (found.kind == "stated" and figures)
            ):
                candidates[found.claim_start, found.claim_end].append(found)
        for (start, end), values in candidates.items():
            first, last = check.claim.start + start, check.claim.start + end
            same = {quotation_key(value.evidence_text) for value in values}
            if len(same) == 1 and self.answer[first:last] == values[0].claim_text:
                first, text = self._with_preposition(first, values[0])
                yield AnswerEdit(
                    first, last, text, "corrected", values[0].reason, ("contradicted_claim",)
                )

    def _with_preposition(self, start: int, value: Contradiction) -> tuple[int, str]:
        """Return a value and where it goes, with the preposition that a date asks for: "in 1887",
        "on 31 March".
        """
        lead = (
            _IN_OR_ON.search(self.answer, self.sentence.start, start)
            if value.kind == "date"
            else None
        )
        if lead is None:
            return start, value.evidence_text
        word = "on" if _DAY.search(value.evidence_text) else "in"
        return (
            lead.start(1),
            f"{word.capitalize() if lead[1][0].isupper() else word} {value.evidence_text}",
        )

    def _statement(self, figures: Sequence[AnswerEdit]) -> str:
        """Return what the sentence says once its figures are corrected, without bullet
        and markers.
        """
        text = self.sentence.text
        spans = {(citation.marker_start, citation.marker_end): "" for citation in self.citations}
        spans |= {(edit.start, edit.end): edit.text for edit in figures}
        for (start, end), new in sorted(spans.items(), reverse=True):
            text = text[: start - self.sentence.start] + new + text[end - self.sentence.start :]
        text = text.replace(CITATION_NEEDED, "")
        return re.sub(r"\s+(?=[.,;:!?])", "", " ".join(text.removeprefix(lead_of(text)).split()))

    def _copied_from(self, statement: str) -> str | None:
        """Return the one chunk that the statement is a copy of; None where there is none or more
        than one.
        """
        index = index_of(self.evidence)
        near = dict.fromkeys(passage.evidence_id for passage in index.assess(statement).supporting)
        found = [
            name for name in near if index.assess(statement, only=(name,)).verdict == "supported"
        ]
        return found[0] if len(found) == 1 else None

    def _references(self, figures: Sequence[AnswerEdit]) -> Iterator[AnswerEdit]:
        """Yield the right reference, or ``[citation needed]``, for those that name no evidence or
        the wrong chunk.
        """
        wrong = {
            r.evidence_id
            for check in self.checks
            for r in check.references
            if r.finding == "misattributed"
        }
        markers: dict[tuple[int, int], list[Citation]] = defaultdict(list)
        for citation in self.citations:
            markers[citation.marker_start, citation.marker_end].append(citation)
        fabricated = any(citation.status == "invalid" for citation in self.citations)
        uncited = self.sentence.status == "uncited"
        if not (
            fabricated or uncited or wrong & {citation.evidence_id for citation in self.citations}
        ):
            return
        home = self._copied_from(self._statement(figures)) if self.checks else None
        if home is None and not fabricated:
            return
        new = self.style.write([home]) if home else CITATION_NEEDED
        if uncited and home:
            yield self._reference(
                *self._gap(), new, "cited", f"{home} says this; the sentence cited nothing"
            )
        for (start, end), held in markers.items():
            faulty = [
                c.reference
                for c in held
                if c.status == "invalid" or (home and c.evidence_id in wrong)
            ]
            if not faulty:
                continue
            right = [
                c.evidence_id
                for c in held
                if c.evidence_id and c.reference not in faulty and c.evidence_id != home
            ]
            words = words_of_marker(self.answer, start, end)
            marker = (
                [self.style.write([*right, home])]
                if home and new
                else [self.style.write(right), new]
            )
            text = " ".join(filter(None, [words, *marker]))
            place = (start, end) if end > start else self._gap()
            names = ", ".join(dict.fromkeys(faulty))
            if home:
                yield self._reference(
                    *place, text, "reattributed", f"{home} says this, not {names}"
                )
            else:
                why = f"{names} names no evidence, and no single chunk says this"
                yield self._reference(*place, text, "uncited_marker_removed", why)
            # the first faulty marker of a sentence gives way to the new one, the others go
            new = ""

    def _gap(self) -> tuple[int, int]:
        """Return where a marker goes that stands in the place of none: before the stop, or where
        one is asked for.
        """
        asked = self.sentence.text.casefold().find(CITATION_NEEDED)
        if asked >= 0:
            return self.sentence.start + asked, self.sentence.start + asked + len(CITATION_NEEDED)
        at = self.sentence.start + len(self.sentence.text.rstrip(".!?;: "))
        return at, at

    def _reference(self, start: int, end: int, text: str, kind: ChangeKind, why: str) -> AnswerEdit:
        """Return the edit with a blank before its marker, and without the blanks before one that
        only goes.
        """
        if not text:
            start = len(self.answer[:start].rstrip(" "))
        elif not self.answer[start - 1 : start].isspace():
            text = f" {text}"
        # what asks for a citation settles nothing: its issue stays open
        ended = () if kind == "uncited_marker_removed" else tuple(_rules_fixed_by_citing())
        return AnswerEdit(start, end, text, kind, why, ended)


def _is_instruction(issue: Issue) -> bool:
    """Return whether the issue says that a text instructs a reader, a model or a tool."""
    return rule_of(issue.rule).kind == "instruction"


def _rules_fixed_by_citing() -> Iterator[str]:
    return (code for code, rule in RULES.items() if rule.is_fixed_by_citing)


def _issues_by_sentence(
    issues: Sequence[Issue], sentences: Sequence[Sentence]
) -> Mapping[int, list[Issue]]:
    """Return the issues that touch each sentence; sentences come in order and don't overlap."""
    ends = [sentence.end for sentence in sentences]
    found: dict[int, list[Issue]] = defaultdict(list)
    for issue in issues:
        if issue.start is None or issue.end is None:
            continue
        for number in range(bisect_right(ends, issue.start), len(sentences)):
            if sentences[number].start >= issue.end:
                break
            found[number].append(issue)
    return found


def _sentence_change(
    sentence: Sentence, edits: Sequence[AnswerEdit], issues: Sequence[Issue]
) -> AnswerChange:
    """Return what became of one sentence, with the issues that this settles."""
    inner = [
        edit._replace(start=edit.start - sentence.start, end=edit.end - sentence.start)
        for edit in edits
    ]
    rules = {rule for edit in edits for rule in edit.rules}
    return AnswerChange(
        kind=edits[0].kind,
        before=sentence.text,
        after="" if edits[0].kind == "dropped" else apply_edits(sentence.text, inner),
        why="; ".join(dict.fromkeys(edit.why.rstrip(".") for edit in edits)) + ".",
        issue_ids=tuple(issue.id for issue in issues if issue.rule in rules),
    )


def _explain_changes(changes: Sequence[AnswerChange]) -> str:
    verbs = {
        "reattributed": "cited another chunk for",
        "corrected": "corrected",
        "dropped": "removed",
        "cited": "added a citation to",
        "uncited_marker_removed": "asked for a citation in place of a fabricated reference in",
    }
    lines = [
        f"{number}. {verbs[change.kind].capitalize()}"
        f" “{shorten(' '.join(change.before.split()), 120)}” ({change.why.rstrip('.')})."
        for number, change in enumerate(changes, 1)
    ]
    return "\n".join(lines) or NOTHING_SAFE


def apply_edits(text: str, edits: Iterable[AnswerEdit]) -> str:
    """Return the text with all edits made, including the blanks and bullets around removed
    sentences.
    """
    for edit in sorted(edits, key=lambda e: (e.start, e.end), reverse=True):
        start, end = (
            _room(text, edit.start, edit.end) if edit.kind == "dropped" else (edit.start, edit.end)
        )
        text = text[:start] + edit.text + text[end:]
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def _room(answer: str, start: int, end: int) -> tuple[int, int]:
    """Return the span to remove with a sentence: its bullet and one of the blanks around it
    included.
    """
    line = answer.rfind("\n", 0, start) + 1
    alone = end >= len(answer) or answer[end] == "\n"
    if alone and (not answer[line:start].strip() or _LEAD.fullmatch(answer[line:start])):
        return line, min(end + 1, len(answer))
    while end < len(answer) and answer[end] in " \t":
        end += 1
    if end >= len(answer) or answer[end] == "\n":
        while start > line and answer[start - 1] in " \t":
            start -= 1
    return start, end


# Writing markers as an answer writes them: their style, and how it names each chunk.

_DIGITS = re.compile(r"\d+$")


class CitingStyle(NamedTuple):
    """How an answer cites: in which style, and how it names each chunk."""

    style: MarkerStyle
    names: dict[str, str]

    def write(self, evidence_ids: Iterable[str]) -> str:
        """Return one marker for these chunks, in this style; empty for none."""
        names = [self.names[evidence_id] for evidence_id in evidence_ids]
        return self.style.write(names) if names and self.style.write else ""


def citing_style(answer: str, audit: CitationAudit, evidence: Sequence[Evidence]) -> CitingStyle:
    """Return the style of most valid markers of the answer; ``[id]`` where there is none that would
    be understood.
    """
    valid = [citation for citation in audit.citations if citation.status == "valid"]
    plain = CitingStyle(SQUARE_BRACKETS, {chunk.id: chunk.id for chunk in evidence})
    if not valid:
        return plain
    found = [
        style_of_marker(answer, citation.marker_start, citation.marker_end) for citation in valid
    ]
    styles = Counter(style if style and style.write else SQUARE_BRACKETS for style in found)
    names = plain.names
    if numbered := {c.resolved_by for c in valid if c.reference.strip().isdigit()}:
        endings = {
            chunk.id: None if "position" in numbered else _DIGITS.search(chunk.id)
            for chunk in evidence
        }
        names = {
            name: ending.group() if ending else str(place)
            for place, (name, ending) in enumerate(endings.items(), 1)
        }
    style = CitingStyle(styles.most_common(1)[0][0], names)
    for chunk in evidence:
        read = audit_citations(f"It is so {style.write([chunk.id])}.", evidence)
        if [citation.evidence_id for citation in read.citations] != [chunk.id]:
            return plain
    return style
