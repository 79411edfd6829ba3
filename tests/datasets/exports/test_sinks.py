"""What a sink writes is what the standard library's writers would, whatever it remembers of the row before."""

from __future__ import annotations

import csv
import io
import itertools
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from masis.datasets.exports import FORMATS
from masis.datasets.exports.sinks import REPEATED, DigestStream, escaped_cell, sink_for
from masis.store import CaseFilter, Store
from masis.store.audits.queue import QUERY_SHOWN
from tests.store.factories import a_case

COLUMNS = ("case_id", "question", "in_force", "start", "text", "support", "note", "answer")
CELL = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([0.0, -0.5, 1e-9]),
    st.text(st.sampled_from("ab ,\"\n\r'=-@;é"), max_size=4),
)


@given(st.lists(st.fixed_dictionaries(dict.fromkeys(COLUMNS, CELL)), max_size=6), st.data())
def test_csv_is_what_csv_writes(rows: list[dict[str, Any]], data: st.DataObject) -> None:
    for before, row in itertools.pairwise(rows):  # rows of one judgement share what is about it
        for name in data.draw(st.sets(st.sampled_from(COLUMNS))):
            row[name] = before[name]
    out, wanted = io.BytesIO(), io.StringIO()
    sink = sink_for("csv", DigestStream(out), COLUMNS)
    for row in rows:
        sink.write(row)
    sink.close()
    writer = csv.writer(wanted)
    writer.writerow(COLUMNS)
    for row in rows:
        cells = [row[name] for name in COLUMNS]
        writer.writerow([escaped_cell(each) if isinstance(each, str) else each for each in cells])
    assert out.getvalue() == wanted.getvalue().encode()


def test_what_repeats_is_at_both_ends_of_every_flat_format() -> None:
    for form in FORMATS.values():
        if form.flat:
            repeated = [name in REPEATED for name in form.columns]
            assert repeated == [*sorted(repeated[:-1], reverse=True), True], form.name


def test_questions_are_read_whole_however_long(tmp_path: Path) -> None:
    questions = ["Why?", "é" * QUERY_SHOWN, "é" * (QUERY_SHOWN + 1), "Why " * 1_000]
    with Store.open(tmp_path / "long.db") as store:
        for number, question in enumerate(questions):
            store.cases.add(a_case(f"case-{number}", query=question))
        assert list(store.outcomes.queries(CaseFilter())) == questions
