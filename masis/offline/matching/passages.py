"""The evidence of a case, cut into passages and indexed once, so that claims are matched quickly.

A passage is a sentence, or a piece of one that runs on (a table, a transcript): nothing is truncated. Passages know
their words at once and their facts when first asked.
"""

from collections.abc import Iterable

from masis.audit.sentences import split_sentences
from masis.offline.parsing.parsed_sentence import ParsedSentence
from masis.offline.text.lexicon import loose_keys
from masis.offline.text.tokens import Token, tokens

LONGEST_PASSAGE = 80
"""Words; a longer sentence is cut into several passages, which windows join again."""


class Passage(ParsedSentence):
    """One sentence of one piece of evidence; `start` and `end` are offsets into that evidence's text, `at` is its place
    among all passages of the case.
    """

    def __init__(self, document: int, evidence_id: str, text: str, start: int, words: list[Token]) -> None:
        """`words` have offsets into `text`, the passage's own; `document` is the position of the evidence in
        the case.
        """
        super().__init__(text, words)
        self.document, self.evidence_id = document, evidence_id
        self.start, self.end = start, start + len(text)
        self.at = 0


def passages(document: int, evidence_id: str, text: str) -> Iterable[Passage]:
    """Yield the passages of one text, in order."""
    for span in split_sentences(text):
        sentence = text[span.start : span.end]
        words = tokens(sentence)
        if len(words) <= LONGEST_PASSAGE:
            if words:
                yield Passage(document, evidence_id, sentence, span.start, words)
            continue
        for first in range(0, len(words), LONGEST_PASSAGE):
            part = words[first : first + LONGEST_PASSAGE]
            begin, end = part[0].start, part[-1].end
            shifted = [word._replace(start=word.start - begin, end=word.end - begin) for word in part]
            yield Passage(document, evidence_id, sentence[begin:end], span.start + begin, shifted)


def postings(found: list[Passage]) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
    """Return, for each content stem and each looser key, the indices of the passages that have it."""
    exact: dict[str, list[int]] = {}
    for i, passage in enumerate(found):
        for root in passage.content:
            exact.setdefault(root, []).append(i)
    loose: dict[str, list[int]] = {}
    for root, where in exact.items():
        for key in loose_keys(root):
            loose.setdefault(key, []).extend(where)
    return exact, loose


def names_in(found: Iterable[Passage]) -> frozenset[str]:
    """Return the stems of words written with a capital inside a sentence: names, in any position."""
    return frozenset(
        word.stem for passage in found for word in passage.words[1:] if word.weight >= 1.3 and word.text[0].isupper()
    )
