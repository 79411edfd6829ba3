"""How far an abstract is about the question: its concepts first, then its meaning where words differ.

``relevance.py`` looks for the concepts of the question in words. Where they are not all there, the likeness of meaning
decides: the greatest cosine between the question and a passage of the abstract, by the sentence encoder that ships with
the package (``masis/offline/inference/minilm``). So other words for a thing never discard an abstract by themselves:

- concepts met (0.50 or more): relevant, unless the meaning is far off;
- else, of one meaning with the question: relevant, unless the question names a drug and the abstract only others;
- else, neither in words nor in meaning: about something else;
- anything between is left open, and so is another language than the question's.

The bounds were fitted on titles and abstracts of StudyTypeTeller's training file (a title taken for the question, 700
own abstracts, 4,900 of others; ``tools/fit_relevance.py``); no abstract of the benchmarks was looked at for them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import numpy as np

from masis.audit.language import detect_language, language_name
from masis.offline.inference.encoder import Array, load_encoder
from masis.schema.screening import Abstract, Reason
from masis.screening.grading import rubric
from masis.screening.grading.designs import cues
from masis.screening.grading.question import Question
from masis.screening.grading.relevance import Relevance, relevance, without_words
from masis.screening.grading.wording import LONGEST_READ

LIKE = 0.60
"""From this likeness on the meaning is one: 95% of own abstracts reach it, 0.5% of near ones (same field) do."""
FAR = 0.30
"""Under this the meaning is another, whatever words are shared: 0.1% of own abstracts, 20% of near ones."""
WORDS, LIKENESS, OFFSET = 9.45, 15.30, -10.55
"""Log odds of relevance = WORDS x score of the concepts + LIKENESS x cosine + OFFSET (logistic regression)."""
MOST_PROMOTED = 0.90
"""Relevance by meaning alone stays under that of concepts that stand in the abstract."""
_PASSAGE = 600
"""Characters of a passage: some 120 word pieces, half of what the encoder reads."""
_PASSAGES = 8
_SEEN = 4_000
"""Characters that a language is detected from."""
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


def relevance_by_meaning(question: Question, abstract: Abstract) -> Relevance:
    """Return how far the abstract is about the question, in words and in meaning, and why."""
    in_words = relevance(question, abstract)
    if in_words.score is None:
        return in_words
    if language := other_language(f"{abstract.title} {abstract.text}"):
        text = f"It could not be matched: the text reads like {language}, and concepts are looked for in English."
        return Relevance(None, in_words.met, Reason(text=text), unmatched=True)
    likeness = likeness_of(question.text, abstract)
    score, why = _joined(question, abstract, in_words, likeness)
    if left_open := without_words(question):  # what could not be looked for may be missing: never kept on the rest
        score, why = min(score, rubric.KEEP_RELEVANCE - 0.01), f"{why} {left_open}".strip()
    reason = Reason(text=f"{in_words.reason.text} {why}".strip(), words=in_words.reason.words)
    return Relevance(score, in_words.met, reason)


def likeness_of(question: str, abstract: Abstract) -> float:
    """Return the greatest cosine between the question and the title or a passage of the abstract, -1 to 1."""
    asked = _vector(question[:LONGEST_READ])
    return max((float(asked @ _vector(passage)) for passage in _passages(abstract)), default=0.0)


def _joined(question: Question, abstract: Abstract, in_words: Relevance, likeness: float) -> tuple[float, str]:
    score = in_words.score or 0.0
    share = f"likeness of meaning {likeness:.2f}"
    if score >= rubric.KEEP_RELEVANCE:
        if likeness >= FAR:
            return score, ""
        return rubric.KEEP_RELEVANCE - 0.01, f"It shares words, but means something else ({share})."
    if likeness >= LIKE:
        other = _another_drug(in_words, abstract)
        if other is None:
            raised = rubric.KEEP_RELEVANCE + (MOST_PROMOTED - rubric.KEEP_RELEVANCE) * (likeness - LIKE) / (1 - LIKE)
            return round(max(score, raised), 4), f"In other words it is about the question ({share})."
        why = f"The question names {other}, and the abstract other drugs ({share})."
        return max(score, rubric.DISCARD_RELEVANCE), why
    odds = WORDS * score + LIKENESS * likeness + OFFSET
    if score < rubric.DISCARD_RELEVANCE and 1 / (1 + math.exp(-odds)) < rubric.DISCARD_RELEVANCE:
        return score, f"Neither its words nor its meaning are the question's ({share})."
    return max(score, rubric.DISCARD_RELEVANCE), f"Its words are not all the question's, nor clearly others ({share})."


def _another_drug(in_words: Relevance, abstract: Abstract) -> str | None:
    """Return the drug that the question names and the abstract doesn't, if the abstract names others; else None.

    Two drugs for one disease are alike in meaning and answer different questions.
    """
    missed = next((each.concept.name for each in in_words.met if not each.words and _drug(each.concept.name)), None)
    return missed if missed and _drug(f"{abstract.title} {abstract.text}") else None


def _drug(text: str) -> bool:
    listed = cues()
    words = re.findall(r"[a-z]{6,}", text[:LONGEST_READ].lower())
    return any(word.endswith(listed.endings) and word not in listed.no_drugs for word in words)


def other_language(text: str) -> str | None:
    """Return the name of the language of a text that is surely not English; else None."""
    code = detect_language(text[:_SEEN])
    return None if code in (None, "en") else language_name(code)


def _passages(abstract: Abstract) -> Iterator[str]:
    if abstract.title.strip():
        yield abstract.title[:_PASSAGE]
    passage, made = "", 0
    for sentence in _SENTENCE_END.split(abstract.text[:LONGEST_READ]):
        if passage and len(passage) + len(sentence) > _PASSAGE:
            yield passage
            passage, made = "", made + 1
            if made == _PASSAGES:
                return
        passage = f"{passage} {sentence}".strip()[: 2 * _PASSAGE]
    if passage:
        yield passage


def _vector(text: str) -> Array:
    total = load_encoder().encode(text)
    unit: Array = total / (np.linalg.norm(total) + 1e-9)
    return unit
