"""The record of one judgement that exports are made from.

It has the answer in its roles (original, judged, standing), the evidence, and labels with offsets.
Offsets count characters (code points) of the judged answer: ``answer[start:end]`` are the words of
a label.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pydantic import TypeAdapter, ValidationError

from masis.audit.citations import carry_over_citations
from masis.audit.citations.label_causes import causes_of_labels
from masis.schema.audit import Citation, ClaimCheck, Sentence
from masis.schema.case import Case, GivenCitation
from masis.schema.causes import Cause
from masis.schema.labels import WORDS_OF_ANSWER, TargetLabel, is_fault
from masis.schema.minimal_evidence import STANCE_OF_VERDICT, audit_passages, remove_passages
from masis.schema.reading import ANSWERING_ROLES, ASKING_ROLES
from masis.schema.review import Decision, decided_about, decision_outcome
from masis.schema.systems import system_name
from masis.store.reviews.outcomes import CaseOutcome, Judgement

Row = dict[str, Any]

_GIVEN_CITATIONS = TypeAdapter(tuple[GivenCitation, ...])

PERSON_KINDS = ("decision", "adjudication")
"""The kinds of entries that are a person's decision."""

RAGTRUTH_TYPE = {
    "contradicted": "Evident Conflict",
    "contradicts": "Evident Conflict",
    "unsupported": "Evident Baseless Info",
    "fabricated": "Evident Baseless Info",
    "fabricated citation": "Evident Baseless Info",
    "partial": "Subtle Baseless Info",
}
"""RAGTruth's type of hallucination for each label; other labels aren't hallucinations."""

_SENTENCE_FIELDS = {"text", "status", "why", "citation_ids"}
_CITATION_FIELDS = {"text", "reference", "evidence_id", "status", "resolved_by"}
_ISSUE_FIELDS = {
    "id",
    "source",
    "type",
    "severity",
    "description",
    "reason",
    "suggestion",
    "evidence_ids",
    "rule",
    "start",
    "end",
}
"""Fields of the audit that are exported as stored."""

_CHAT_ROLES = {
    **dict.fromkeys(ANSWERING_ROLES, "assistant"),
    **dict.fromkeys(ASKING_ROLES, "user"),
    "system": "system",
}
"""Roles as chat formats name them. Other roles, such as a tool's, are left out."""

_MODEL_KEYS = ("model", "system")
"""Keys of a case's metadata that name the author of an imported answer."""

_PASSAGE_FIELDS = ("evidence_id", "start", "end", "text", "stance")

_TRACE_KEYS = ("langfuse_trace_id", "trace_id", "traceId")
_SPAN_KEYS = ("langfuse_observation_id", "observation_id", "observationId", "span_id")
_SCORE_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "https://masis.invalid/scores")


def locate_words(text: str | None, words: str, start: Any, end: Any) -> Row:
    """Return where words occur in a text, as ``start`` and ``end``.

    The given offsets are used if they match the words, else the only occurrence; otherwise both are
    None. A sentence or claim may occur twice, so its own offsets come first. Offsets of a decision
    that a program sent may be wrong, and wrong offsets are never exported.
    """
    if text is not None and words:
        if (
            isinstance(start, int)
            and isinstance(end, int)
            and 0 <= start < end
            and text[start:end] == words
        ):
            return {"start": start, "end": end}
        occurrence = text.find(words)
        if occurrence >= 0 and text.find(words, occurrence + 1) < 0:
            return {"start": occurrence, "end": occurrence + len(words)}
    return {"start": None, "end": None}


def prompt_for(case: Row) -> str:
    """Return the prompt for a model: the question of a case with its evidence."""
    sources = "\n\n".join(f"[{chunk['id']}] {chunk.get('text', '')}" for chunk in case["evidence"])
    return (
        "Answer the question from the sources. Cite the source of each statement by its id in"
        f" brackets.\n\nSources:\n\n{sources}\n\nQuestion: {case['query']}"
    )


def asked_turns(case: Row) -> list[Row]:
    """Return the turns before the answer of a case: the earlier conversation, then the prompt."""
    turns = Case.from_stored(case).earlier_turns if case.get("messages") else ()
    before = [
        {"role": _CHAT_ROLES[turn.role], "content": turn.text}
        for turn in turns
        if turn.role in _CHAT_ROLES
    ]
    return [*before, {"role": "user", "content": prompt_for(case)}]


@dataclass(frozen=True, eq=False)
class JudgedAnswer:
    """One judgement on one answer of a case: the record whose fields ``formats.toml`` names."""

    outcome: CaseOutcome
    judgement: Judgement
    split: str
    others: Sequence[JudgedAnswer] = field(default=(), repr=False)
    """Every judgement on the case, including this one."""

    def get(self, name: str) -> Any:
        """Return a field by its name; JMESPath calls this method on objects.

        Raises:
            KeyError: There is no such field.

        """
        if name in self._plain_fields:
            return self._plain_fields[name]
        if name not in _FIELDS:
            raise KeyError(name)
        return getattr(self, name)

    @cached_property
    def _plain_fields(self) -> Row:
        entry, run, decision = self.judgement.entry, self.judgement.run, self.decided
        return {
            "case": self.case,
            "case_id": self.case["id"],
            "question": self.case["query"],
            "state": self.outcome.state,
            "split": self.split,
            "system": system_of(self.case),
            "decision_reason": decision.reason if decision else None,
            "decision_note": decision.note if decision else None,
            "in_force": self.judgement.in_force,
            "decision": decision.verdict if decision else None,
            "decided_by": decision.reviewer if decision else None,
            "decided_about": decided_about(decision) if decision else "",
            "outcome": decision_outcome(decision) if decision else "",
            "entry_id": entry.id if entry else None,
            "decided_at": entry.at if entry else None,
            "run_id": run.id if run else None,
            "run": {**run._asdict(), "iteration": self.judgement.number} if run else None,
            "iteration": self.judgement.number,
            "drafter": self._written_by(),
            "trace": external_id(self.case, _TRACE_KEYS),
            "known": self.answer is not None,
            "audited": self.answer is not None and self.judgement.iteration is not None,
        }

    def _written_by(self) -> str:
        """Return who wrote the judged answer.

        That is the drafter or reviser of the run. The author of an imported answer is the model or
        system that the case's metadata names, or else ``imported``: the run's drafter didn't write
        it.
        """
        run = self.judgement.run
        if run is not None and self.judgement.number is not None and self.judgement.number > 1:
            return run.models.get("reviser", "")
        if self.original is not None and self.original.strip():
            return external_id(self.case, _MODEL_KEYS) or "imported"
        return run.models.get("drafter", "") if run else ""

    # The case

    @property
    def case(self) -> dict[str, Any]:
        """The case as imported."""
        return self.outcome.case

    @property
    def digest(self) -> str:
        """The digest of the case's text, the same as in the lake of audited cases."""
        content = json.dumps(self.case, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(content.encode()).hexdigest()

    @property
    def evidence(self) -> list[Row]:
        """The chunks with id, text and, if there is one, source."""
        return [
            {"id": chunk["id"], "text": chunk.get("text", "")}
            | ({"source": chunk["source"]} if chunk.get("source") is not None else {})
            for chunk in self.case["evidence"]
        ]

    @property
    def passages(self) -> str:
        """The chunks as one text, in RAGTruth's format."""
        return "\n\n".join(
            f"passage {place}:{chunk['text']}" for place, chunk in enumerate(self.evidence, 1)
        )

    @property
    def prompt(self) -> str:
        """The prompt for a model: the question with its evidence."""
        return prompt_for(self.case)

    @property
    def asked(self) -> list[Row]:
        """The turns before the answer: the earlier conversation, then the prompt."""
        return asked_turns(self.case)

    # People's decisions

    @property
    def coded_modes(self) -> list[Row]:
        """The failure modes that people applied to the case, with their reviewers."""
        return [mode._asdict() for mode in self.outcome.modes]

    @property
    def modes(self) -> str:
        """The names of the case's failure modes, separated by "; "."""
        return "; ".join(mode.name for mode in self.outcome.modes)

    @property
    def decided(self) -> Decision | None:
        """The decision of a person or of the acceptance policy; None if only the machine judged."""
        entry = self.judgement.entry
        return entry.decision if entry else None

    @property
    def reviewer(self) -> str | None:
        """The person who decided, or None."""
        return self.decided.reviewer if self.decided and self.decided.kind in PERSON_KINDS else None

    @cached_property
    def entry(self) -> Row | None:
        """The entry of the decision log."""
        return self.judgement.entry.model_dump(mode="json") if self.judgement.entry else None

    @property
    def decisions(self) -> list[Row | None]:
        """The entries of all the case's reviewers."""
        decided_answers = [
            answer
            for answer in self.others
            if answer.decided is not None and answer.decided.kind == "decision"
        ]
        return [
            self.entry if answer.judgement.entry is self.judgement.entry else answer.entry
            for answer in decided_answers
        ]

    # The audit's results

    @cached_property
    def claims(self) -> list[Row]:
        """The machine's claims in the judged answer, with offsets in it."""
        iteration = self.judgement.iteration
        return [
            {
                "text": check.claim.text,
                "statement": check.claim.statement or check.claim.text,
                **locate_words(self.answer, check.claim.text, check.claim.start, check.claim.end),
                **check.model_dump(
                    mode="json", include={"verdict", "support", "confidence", "sources"}
                ),
                "cited": list(check.claim.cited),
                "judged_by": check.judged_by,
            }
            for check in (iteration.claims if iteration else ())
        ]

    @cached_property
    def sentences(self) -> list[Row]:
        """The sentences of the judged answer, as the citation engine split them."""
        iteration = self.judgement.iteration
        return self._with_offsets(
            iteration.citation_audit.sentences if iteration else (), _SENTENCE_FIELDS
        )

    @cached_property
    def citations(self) -> list[Row]:
        """The references of the judged answer, with offsets."""
        iteration = self.judgement.iteration
        return self._with_offsets(
            iteration.citation_audit.citations if iteration else (), _CITATION_FIELDS
        )

    def _with_offsets(self, parts: Iterable[Sentence | Citation], fields: set[str]) -> list[Row]:
        """Return parts of the audit as stored, followed by their offsets in the answer."""
        return [
            part.model_dump(mode="json", include=fields)
            | locate_words(self.answer, part.text, part.start, part.end)
            for part in parts
        ]

    @cached_property
    def issues(self) -> list[Row]:
        """The issues that the audit found; offsets are None if an issue has no place."""
        iteration, answer = self.judgement.iteration, self.answer
        return [
            issue.model_dump(mode="json", include=_ISSUE_FIELDS)
            | {
                "text": (
                    None
                    if answer is None or issue.start is None
                    else answer[issue.start : issue.end]
                )
            }
            for issue in (iteration.issues if iteration else ())
        ]

    # The answers

    @cached_property
    def answer(self) -> str | None:
        """The judged answer; None if the run that wrote it was removed."""
        iteration = self.judgement.iteration
        if iteration is not None:
            return iteration.answer
        return self.original if self.judgement.entry is None or self.judgement.number == 1 else None

    @property
    def original(self) -> str | None:
        """The answer that came with the case."""
        answer = self.case.get("answer")
        return answer if isinstance(answer, str) else None

    @property
    def standing(self) -> str | None:
        """The answer that stands after the decision: the corrected one, or else the judged one.

        None if no answer stands.
        """
        decision = self.decided
        if decision is None or decision.kind not in (*PERSON_KINDS, "policy_accept"):
            return None
        if decision.verdict in ("reject", "escalate"):
            return None
        return self.answer if decision.corrected_answer is None else decision.corrected_answer

    @property
    def standing_citations(self) -> list[Row]:
        """The citations given with the original answer that are still valid for the standing one.

        Those are the citations of unchanged sentences, with offsets in the standing answer.
        """
        given_citations, standing = self.case.get("citations"), self.standing
        if not given_citations or standing is None or self.original is None:
            return []
        try:
            citations = _GIVEN_CITATIONS.validate_python(given_citations)
        # Older cases may use the key for something else, which the case keeps.
        except ValidationError:
            return []
        carried = carry_over_citations(citations, self.original, standing)
        return [citation.model_dump(mode="json", exclude_unset=True) for citation in carried]

    @property
    def person_let_stand(self) -> bool:
        """Whether a person, and not the policy, let a non-blank answer stand."""
        return self.reviewer is not None and bool((self.standing or "").strip())

    @property
    def rejected(self) -> str | None:
        """The answer that the standing one replaced, or None."""
        corrected = self.decided is not None and self.decided.corrected_answer is not None
        replaced = self.answer if corrected else self.original
        return replaced if replaced and replaced.strip() else None

    @property
    def differs(self) -> bool:
        """Whether the standing and the replaced answer differ in more than blanks."""
        return (self.standing or "").split() != (self.rejected or "").split()

    # Labels

    @cached_property
    def labels(self) -> list[Row]:
        """The person's labels on the judged answer.

        Offsets are None if the words don't occur exactly once. Labels with a severity report an
        issue that the audit missed. A label on the whole answer (``target`` "answer") has no
        offsets and no words.
        """
        return [
            label.model_dump(mode="json")
            | locate_words(self.answer, label.text, label.start, label.end)
            for label in (self.decided.labels if self.decided else ())
        ]

    @property
    def marked(self) -> bool:
        """Whether all faults of the answer are located.

        If an answer was rejected or reported as a whole without a label on words, its faults have
        no known place. Exporting it as a row of spans would teach a model that it has none.
        """
        on_words = any(label["target"] != "answer" for label in self.labels)
        return on_words or (
            not self.labels and self.decided is not None and self.decided.verdict == "approve"
        )

    @property
    def ragtruth_labels(self) -> list[Row]:
        """The labels that mark a hallucination, in RAGTruth's format."""
        return [
            {
                **{name: label[name] for name in ("start", "end", "text")},
                "meta": label["note"],
                "label_type": RAGTRUTH_TYPE[label["label"]],
                "implicit_true": False,
                "due_to_null": False,
            }
            for label in self.labels
            if label["label"] in RAGTRUTH_TYPE and label["start"] is not None
        ]

    @property
    def labelled_claims(self) -> list[Row]:
        """The claims, each with the person's labels and the passage that decides it.

        ``label`` is the label on exactly the claim's words. ``fault_labels`` has the labels of
        faults on other words that overlap the claim, and reported issues on any of its words;
        ``fault_notes`` has their notes.
        """
        checks = self.judgement.iteration.claims if self.judgement.iteration else ()
        return [
            claim
            | self._label_at("claim", claim)
            | self._merged_label(claim)
            | self._faults_in(claim)
            | self._deciding_passage(claim, check)
            for claim, check in zip(self.claims, checks, strict=True)
        ]

    @property
    def labelled_sentences(self) -> list[Row]:
        """The sentences, each with the person's label on exactly its words."""
        return [
            sentence | {"cited": sentence["citation_ids"]} | self._label_at("sentence", sentence)
            for sentence in self.sentences
        ]

    @property
    def compared_labels(self) -> list[Row]:
        """The labels, each with the machine's verdict on the same words."""
        return [label | {"machine": self._machine_verdict(label)} for label in self.labels]

    def _label_at(self, target: str, row: Row) -> Row:
        """Return label and note on exactly the words of a row: the last one, or None."""
        place = (target, row["start"], row["end"])
        matches = [
            candidate
            for candidate in self.labels
            if (candidate["target"], candidate["start"], candidate["end"]) == place
        ]
        label = matches[-1] if matches and row["start"] is not None else None
        return {name: label[name] if label else None for name in ("label", "note")}

    def _merged_label(self, claim: Row) -> Row:
        """Return every reviewer's label on a claim, and the one label that they give together.

        The adjudication's label counts, or else the label of most reviewers; a tie gives None. Only
        labels on the same answer are merged. Pending decisions of a shared case aren't among
        ``others``, so nothing undecided is shown.
        """
        labels: list[Row] = []
        adjudicated: list[Row] = []
        for judged in self.others:
            label = judged._label_at("claim", claim)["label"]
            if judged.reviewer is None or judged.decided is None or judged.answer != self.answer:
                continue
            if label is not None:
                given = adjudicated if judged.decided.kind == "adjudication" else labels
                given.append({"reviewer": judged.reviewer, "label": label})
        if adjudicated:
            final = adjudicated[-1]
            return {
                "labels": labels,
                "merged_label": final["label"],
                "merged_how": "adjudication",
                "merged_by": final["reviewer"],
            }
        majority = _majority(label["label"] for label in labels)
        return {
            "labels": labels,
            "merged_label": majority,
            "merged_how": None if majority is None else "majority",
            "merged_by": None,
        }

    def _labels_over(self, claim: Row) -> list[TargetLabel]:
        """Return the labels whose words overlap a claim, those on exactly its words last."""
        if claim["start"] is None or self.decided is None:
            return []
        placed = [
            (row, label)
            for row, label in zip(self.labels, self.decided.labels, strict=True)
            if label.target in WORDS_OF_ANSWER
            and row["start"] is not None
            and row["start"] < claim["end"]
            and claim["start"] < row["end"]
        ]
        placed.sort(key=lambda pair: _is_on(pair[0], claim))
        return [label for _, label in placed]

    def _faults_in(self, claim: Row) -> Row:
        """Return the faults that a person located in a claim, and where the last one comes from."""
        faults = [label for label in self._labels_over(claim) if is_fault(label)]
        causes = [cause for label in faults if (cause := self._causes[label])]
        elsewhere = [
            label
            for label in faults
            if label.target != "claim" or label.reports or label.text != claim["text"]
        ]
        return {
            "fault_labels": "; ".join(dict.fromkeys(label.label for label in elsewhere)),
            "fault_notes": "; ".join(
                dict.fromkeys(label.note for label in elsewhere if label.note)
            ),
            "cause": causes[-1] if causes else None,
        }

    @cached_property
    def _causes(self) -> dict[TargetLabel, Cause | None]:
        """Where the fault of each of the decision's labels comes from."""
        labels = self.decided.labels if self.decided else ()
        iteration = self.judgement.iteration
        causes = causes_of_labels(labels, iteration.citation_audit if iteration else None)
        return dict(zip(labels, causes, strict=True))

    def _deciding_passage(self, claim: Row, check: ClaimCheck) -> Row:
        """Return the passage that decides a claim, and whether a person or the audit named it.

        A passage that a person's label names comes before the audit's. A passage is exported only
        if its offsets select its text in the chunk.
        """
        by_person: list[Row] = []
        for label in reversed(self._labels_over(claim)):
            stance = STANCE_OF_VERDICT.get(label.label)
            passages = sorted(label.evidence, key=lambda passage: passage.stance != stance)
            by_person += [passage.model_dump(mode="json") for passage in passages]
        by_audit = [passage.model_dump(mode="json") for passage in audit_passages(check)]
        texts = {chunk["id"]: chunk["text"] for chunk in self.evidence}
        for named_by, passages_named in (("reviewer", by_person), ("audit", by_audit)):
            for passage in passages_named:
                text = texts.get(passage["evidence_id"], "")
                if passage["text"] and text[passage["start"] : passage["end"]] == passage["text"]:
                    columns = {f"passage_{name}": passage[name] for name in _PASSAGE_FIELDS}
                    return columns | {"passage_by": named_by}
        return dict.fromkeys((*(f"passage_{name}" for name in _PASSAGE_FIELDS), "passage_by"))

    # Passages and chunks

    @cached_property
    def attribution_pairs(self) -> list[Row]:
        """Pairs of words of the answer and a passage, by the person's labels.

        A passage that supports the words is ``positive`` and one that contradicts them is
        ``negative``. If a person named another right reference, that chunk is ``positive`` and the
        cited one is ``hard_negative``: it was near enough to be cited.
        """
        texts = {chunk["id"]: chunk["text"] for chunk in self.evidence}
        pairs: list[Row] = []
        for row, label in zip(
            self.labels, self.decided.labels if self.decided else (), strict=True
        ):
            if row["start"] is None:
                continue
            claims = [claim for claim in self.claims if _overlap(row, claim)]
            # A label on a reference judges the claim that the reference belongs to.
            words = claims[0] if claims and label.target == "reference" else row
            place = {name: words[name] for name in ("start", "end", "text")}
            for passage in label.evidence:
                named = passage.model_dump(mode="json")
                if (
                    texts.get(named["evidence_id"], "")[named["start"] : named["end"]]
                    == named["text"]
                ):
                    kind = "positive" if named["stance"] == "supports" else "negative"
                    pairs.append(_attribution_pair(place, kind, named))
            cited: set[str] = set()
            if label.target == "reference":
                cited = {id_ for id_ in self._cited_at(row) if id_ in texts}
            elif claims:
                cited = {id_ for id_ in claims[0]["cited"] if id_ in texts}
            right = label.right_reference
            if right is not None or (label.target, label.label) == ("reference", "misattributed"):
                wrong = sorted(cited - {right})
                pairs += [
                    _attribution_pair(place, "hard_negative", _whole(id_, texts)) for id_ in wrong
                ]
            if right is not None and right in texts:
                pairs.append(_attribution_pair(place, "positive", _whole(right, texts)))
        # Several labels may name the same pair. Comparing each with all earlier ones would take
        # 25 times as long for five times as many labels.
        return list({tuple(pair.values()): pair for pair in pairs}.values())

    def _cited_at(self, place: Row) -> list[str]:
        """Return the chunks that references overlapping these words cite.

        A reference's words are its number, and a label may also cover its brackets.
        """
        return [
            citation["evidence_id"]
            for citation in self.citations
            if citation["evidence_id"] is not None
            and place["start"] is not None
            and _overlap(place, citation)
        ]

    @cached_property
    def judged_chunks(self) -> dict[str, int]:
        """People's judgement of each judged chunk: 1 if it is relevant to the question, else 0.

        Labels on a chunk count first: the adjudication's, or else those of most reviewers. Without
        one, a chunk is relevant if a person named a passage of it, named it as the right reference,
        or confirmed a reference to it.
        """
        votes: dict[str, list[str]] = {}
        final: dict[str, str] = {}
        used: dict[str, int] = {}
        for judged in self.others:
            if judged.reviewer is None or judged.decided is None:
                continue
            for row, label in zip(judged.labels, judged.decided.labels, strict=True):
                if label.target == "evidence" and label.evidence_id is not None:
                    said = "irrelevant" if label.label == "irrelevant" else "relevant"
                    if judged.decided.kind == "adjudication":
                        final[label.evidence_id] = said
                    else:
                        votes.setdefault(label.evidence_id, []).append(said)
                used |= {passage.evidence_id: 1 for passage in label.evidence}
                if label.right_reference is not None:
                    used[label.right_reference] = 1
                if (label.target, label.label) == ("reference", "valid"):
                    used |= dict.fromkeys(judged._cited_at(row), 1)
        merged = {name: most for name, given in votes.items() if (most := _majority(given))} | final
        return used | {name: int(said == "relevant") for name, said in merged.items()}

    @property
    def chunk_relevance(self) -> list[Row]:
        """A row for each different chunk text of the case; ``relevance`` is None if not judged.

        ``topic`` is a digest of the case's id, and ``doc`` one of the chunk's text, so that a chunk
        that several cases share is one document.
        """
        rows: dict[str, Row] = {}
        for chunk in self.evidence:
            relevance, doc = self.judged_chunks.get(chunk["id"]), _short_digest(chunk["text"])
            row = rows.setdefault(
                doc,
                {
                    "topic": _short_digest(self.case["id"]),
                    "case_id": self.case["id"],
                    "question": self.case["query"],
                    "doc": doc,
                    "evidence_id": chunk["id"],
                    "source": str(chunk.get("source") or ""),
                    "text": chunk["text"],
                    "relevance": relevance,
                },
            )
            if relevance is not None:
                row["relevance"] = max(relevance, row["relevance"] or 0)
        return list(rows.values())

    def _machine_verdict(self, label: Row) -> str | None:
        """Return the machine's verdict on exactly the words of a label, or None."""
        judged = {"claim": (self.claims, "verdict"), "sentence": (self.sentences, "status")}
        judged |= {"reference": (self.citations, "status")}
        rows, name = judged.get(label["target"], ([], ""))
        verdicts = (
            row[name]
            for row in rows
            if (row["start"], row["end"]) == (label["start"], label["end"])
        )
        return None if label["start"] is None else next(verdicts, None)

    @property
    def contrast_pairs(self) -> list[Row]:
        """The claims that were verified again without the passages that decide them.

        Each has the evidence with and without the passages, and the verdict on either.
        """
        return [
            {
                "case_id": self.case["id"],
                "question": self.case["query"],
                "split": self.split,
                "run_id": result.run_id,
                "iteration": result.iteration,
                "claim": result.text,
                "start": result.start,
                "end": result.end,
                "passages": [passage.model_dump(mode="json") for passage in result.passages],
                "passage_by": "reviewer" if result.label_by else "audit",
                "with_passages": {"evidence": self.evidence, "verdict": result.before},
                "without_passages": {
                    "evidence": [
                        chunk
                        | {"text": remove_passages(chunk["id"], chunk["text"], result.passages)}
                        for chunk in self.evidence
                    ],
                    "verdict": result.after,
                },
                "decisive": result.decisive,
                "judged_by": result.judged_by,
            }
            for result in self.judgement.minimal_evidence
        ]

    # Formats of other tools

    @property
    def langfuse_scores(self) -> list[Row]:
        """Request bodies for ``POST /api/public/scores``.

        The ids are derived from the content, so that sending twice creates no duplicates.
        """
        trace, span = (external_id(self.case, names) for names in (_TRACE_KEYS, _SPAN_KEYS))
        about = {"traceId": trace} if span is None else {"traceId": trace, "observationId": span}
        entry, run, decision = self.judgement.entry, self.judgement.run, self.decided
        scores: list[tuple[str, str | float | None, str, str]] = []
        if entry is not None and decision is not None and self.reviewer is not None:
            scores.append(
                ("decision", decision.verdict, decision.reason or decision.note, entry.id)
            )
        if run is not None:
            scores += [
                (name, getattr(run, name), "", run.id)
                for name in ("quality", "confidence", "overall")
            ]
        return [
            {
                "id": str(uuid.uuid5(_SCORE_NAMESPACE, f"{trace}/{span}/masis-{name}/{source}")),
                **about,
                "name": f"masis-{name}",
                "value": value,
                "dataType": "CATEGORICAL" if isinstance(value, str) else "NUMERIC",
                **({"comment": comment} if comment else {}),
            }
            for name, value, comment, source in scores
            if value is not None
        ]

    @property
    def label_studio_task(self) -> Row:
        """A Label Studio task.

        The machine's claims are predictions, and each reviewer's labels on the same answer are
        annotations.
        """
        same = [
            judged
            for judged in self.others
            if judged.answer == self.answer and judged.reviewer is not None
        ]
        regions = [
            _label_studio_region(judged, judged["verdict"])
            for judged in self.claims
            if judged["start"] is not None
        ]
        verifier = (
            self.judgement.run.models.get("verifier", "offline")
            if self.judgement.run is not None
            else None
        )
        return {
            "data": {
                **{name: self.get(name) for name in ("case_id", "split", "question")},
                "text": self.answer,
                "evidence": self.evidence,
            },
            "predictions": (
                [{"model_version": verifier, "result": regions}] if regions and verifier else []
            ),
            "annotations": [
                {
                    "result": list(
                        filter(
                            None, map(judged._annotation, range(len(judged.labels)), judged.labels)
                        )
                    ),
                    "was_cancelled": False,
                    "ground_truth": judged.judgement.in_force,
                }
                for judged in same
            ],
        }

    def _annotation(self, number: int, label: Row) -> Row | None:
        """Return a label on words as a region, and one on the whole answer as a choice."""
        # Several issues may be reported on the same words. Label Studio merges regions with one id.
        id_suffix = f"-{number}" if label["severity"] else ""
        details = [f"reviewer: {self.reviewer}"]
        if label["severity"]:
            details += [
                f"severity: {label['severity']}",
                *([f"note: {label['note']}"] if label["note"] else []),
            ]
        meta = {"meta": {"text": details}}
        if label["start"] is not None:
            return _label_studio_region(label, label["label"], id_suffix) | meta
        if label["target"] != "answer":
            return None
        choice = {
            "id": f"answer{id_suffix}",
            "from_name": "answer",
            "to_name": "text",
            "type": "choices",
        }
        return {**choice, "value": {"choices": [label["label"]]}, **meta}


_FIELDS = frozenset(name for name in dir(JudgedAnswer) if not name.startswith("_")) | {"split"}


def _majority(labels: Iterable[str]) -> str | None:
    """Return the most frequent label, or None if there is no label or several tie."""
    counts = Counter(labels).most_common(2)
    if not counts or (len(counts) == 2 and counts[0][1] == counts[1][1]):
        return None
    return counts[0][0]


def _short_digest(text: str) -> str:
    """Return an id without blanks, which TREC's files need: 16 hexadecimal digits of SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _overlap(one: Row, other: Row) -> bool:
    """Return whether two places in the answer share words."""
    return (
        other["start"] is not None and one["start"] < other["end"] and other["start"] < one["end"]
    )


def _whole(evidence_id: str, texts: dict[str, str]) -> Row:
    """Return a whole chunk as a passage."""
    text = texts[evidence_id]
    return {"evidence_id": evidence_id, "start": 0, "end": len(text), "text": text}


def _attribution_pair(place: Row, attribution: str, passage: Row) -> Row:
    named = {f"passage_{name}": passage[name] for name in ("evidence_id", "start", "end", "text")}
    return {**place, "attribution": attribution, **named}


def _is_on(label: Row, claim: Row) -> bool:
    """Return whether a label is on exactly the words of a claim."""
    return bool((label["start"], label["end"]) == (claim["start"], claim["end"]))


def system_of(case: Row) -> str:
    """Return the name of the system that answered a case, or "unnamed"."""
    metadata = case.get("metadata")
    return system_name(metadata.get("system") if isinstance(metadata, dict) else None)


def external_id(case: dict[str, Any], names: Sequence[str]) -> str | None:
    """Return the id of the case in another tool.

    It is looked up in the metadata, in ``external`` there, and beside the case's fields.
    """
    metadata = case.get("metadata")
    places = [
        metadata,
        metadata.get("external") if isinstance(metadata, dict) else None,
        case.get("external"),
        case,
    ]
    ids = (place.get(name) for place in places if isinstance(place, dict) for name in names)
    return next((value for value in ids if isinstance(value, str) and value), None)


def _label_studio_region(row: Row, label: str, id_suffix: str = "") -> Row:
    place = {name: row[name] for name in ("start", "end", "text")}
    return {
        "id": f"{row.get('target', 'claim')}-{row['start']}-{row['end']}{id_suffix}",
        "from_name": "label",
        "to_name": "text",
        "type": "labels",
        "value": {**place, "labels": [label]},
    }
