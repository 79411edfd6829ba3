"""Citations that came beside an answer on the desk: their words stay text, and what they name stands behind them."""

from __future__ import annotations

from masis import run_audit
from masis.views.marks import answer_pieces, reference_marks
from tests.cases import case_of

ANSWER = "The bridge is 120 metres long. It was opened in 1931 [b]."
CASE = case_of(
    ANSWER,
    {"a": "The bridge is 120 metres long.", "b": "It was opened in 1931."},
    case_id="1",
    citations=[
        {"start": 0, "end": 30, "evidence_id": "a"},
        {"start": 0, "end": 30, "evidence_id": "nowhere"},
        {"start": 31, "end": len(ANSWER), "evidence_id": "b"},
    ],
)


def test_what_ends_there_is_named_behind_the_words_the_worst_of_it_first_and_a_marker_stays_a_marker() -> None:
    first = run_audit(CASE).iterations[0]
    marks = reference_marks(first)
    pieces = list(answer_pieces(first, marks, [None] * len(first.issues)))
    assert "".join(piece["text"] for piece in pieces) == ANSWER
    ended = [(piece["beside"], piece["reference"]) for piece in pieces if piece.get("beside")]
    assert ended == [(["a", "nowhere"], "fabricated"), (["b"], "valid")]
    markers = [piece["text"] for piece in pieces if piece.get("reference") and "beside" not in piece]
    assert markers == ["[b]"]
