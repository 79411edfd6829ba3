"""The windows of evidence that a claim is scored against: at most three, chosen by the words they share with it.

A window is a run of neighbouring sentences of one chunk, as long as such models read well. Words are counted in any
language that writes them with letters; where a script writes no blanks, each character counts as one.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from masis.audit.sentences import split_sentences
from masis.schema.case import Evidence

MOST = 3
"""Windows scored for each claim."""
WINDOW_WORDS = 180
"""Words a window has at most: with a claim about 300 tokens, within the 512 that most such models were trained on."""
STRIDE = 0.5
"""By how much of a window the next one begins later: what straddles two windows stands whole in a third."""

_WORD = re.compile(r"[぀-ヿ㐀-䶿一-鿿฀-๿]|[^\W_]+")


class Window(NamedTuple):
    """A stretch of a chunk: ``evidence.text[start:end] == text``; ``shared``, 0 to 1, of a claim's words are in it."""

    evidence_id: str
    start: int
    end: int
    text: str
    shared: float = 0.0


class _Indexed(NamedTuple):
    window: Window
    words: frozenset[str]


def words_of(text: str) -> list[str]:
    """Return the words of a text, case folded."""
    return [word.casefold() for word in _WORD.findall(text)]


@lru_cache(maxsize=256)
def _windows(evidence_id: str, text: str) -> tuple[_Indexed, ...]:
    return tuple(_Indexed(window, frozenset(words_of(window.text))) for window in _cut(evidence_id, text))


def _cut(evidence_id: str, text: str) -> Iterator[Window]:
    pieces = [piece for span in split_sentences(text) for piece in _pieces(text, span.start, span.end)]
    first = 0
    while first < len(pieces):
        last, count = first, 0
        while last < len(pieces) and (last == first or count + pieces[last][2] <= WINDOW_WORDS):
            count += pieces[last][2]
            last += 1
        start, end = pieces[first][0], pieces[last - 1][1]
        yield Window(evidence_id, start, end, text[start:end])
        if last >= len(pieces):
            return
        skipped, following = 0, first
        while following < last - 1 and skipped < count * STRIDE:
            skipped += pieces[following][2]
            following += 1
        first = max(following, first + 1)


def _pieces(text: str, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield a sentence, or pieces of one that runs on, with the number of words in each."""
    found = list(_WORD.finditer(text, start, end))
    if len(found) <= WINDOW_WORDS:
        if found:
            yield start, end, len(found)
        return
    for first in range(0, len(found), WINDOW_WORDS):
        part = found[first : first + WINDOW_WORDS]
        yield part[0].start(), part[-1].end(), len(part)


def choose(claim: str, evidence: Sequence[Evidence], cited: Sequence[str] = ()) -> tuple[Window, ...]:
    """Choose the windows to score a claim against, those that share most with it first.

    A rare word counts for more than one that every window has. The best window of all is always among them; then each
    cited chunk gives its best one, so that a verdict on the citation rests on what it cites; then the next best.
    """
    every = [each for chunk in evidence if chunk.text.strip() for each in _windows(chunk.id, chunk.text)]
    wanted = set(words_of(claim))
    if not every or not wanted:
        return ()
    having = Counter(word for each in every for word in each.words & wanted)
    weight = {
        word: math.log(1 + len(every) / having[word]) if word in having else math.log(2 + len(every)) for word in wanted
    }
    whole = sum(weight.values())
    scored = [each.window._replace(shared=sum(weight[word] for word in each.words & wanted) / whole) for each in every]
    ranked = sorted(range(len(scored)), key=lambda at: (-scored[at].shared, at))
    chosen = ranked[:1]
    best_of: dict[str, int] = {}
    for at in ranked:
        best_of.setdefault(scored[at].evidence_id, at)
    own = sorted((best_of[chunk] for chunk in dict.fromkeys(cited) if chunk in best_of), key=ranked.index)
    chosen += [at for at in own if at not in chosen][: MOST - len(chosen)]
    chosen += [at for at in ranked if at not in chosen][: MOST - len(chosen)]
    return tuple(scored[at] for at in chosen)
