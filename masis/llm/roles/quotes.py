"""The chunks that a model names and quotes, looked up: an id that names none, and words that none has, don't count."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from masis.audit.citations.resolution import index_of
from masis.audit.quotes import located_parts
from masis.llm.roles.prompting import rearmed
from masis.schema.audit import Quote
from masis.schema.case import Evidence

_BRACKETS = "[](){}【】<>\"'`“”‘’ \t\n"


class Chunks:
    """The evidence of a case, by what a model calls it."""

    def __init__(self, evidence: Sequence[Evidence]) -> None:
        self.texts = {chunk.id: chunk.text for chunk in evidence}
        self.sources = {chunk.id: chunk.source or "" for chunk in evidence}
        self._index = index_of(tuple(chunk.id for chunk in evidence), tuple(chunk.source for chunk in evidence))

    @property
    def readable(self) -> bool:
        """Whether any chunk has text."""
        return any(text.strip() for text in self.texts.values())

    def id_of(self, name: str) -> str | None:
        """The id that a model means: to the letter, in brackets, in other case, by its number; None for no chunk."""
        name = rearmed(name)
        found = self._index.resolve(name).evidence_id
        return found or self._index.resolve(name.strip(_BRACKETS)).evidence_id

    def ids_of(self, names: Iterable[str]) -> tuple[str, ...]:
        """The ids that these names mean, each once, without those that mean none."""
        return tuple(dict.fromkeys(found for name in names if (found := self.id_of(name)) is not None))

    def quotes(self, evidence_id: str, words: str, score: float) -> tuple[Quote, ...]:
        """Where the chunk says these words, a record for each part of a quote with dots; empty where it does not."""
        text = self.texts[evidence_id]
        return tuple(
            Quote(evidence_id=evidence_id, start=start, end=end, text=text[start:end], score=score)
            for start, end in located_parts(words, text)
        )
