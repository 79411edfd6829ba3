"""What ``masis audit --engine ray`` says at its end; its audits are tested where Ray is installed."""

from __future__ import annotations

import pytest

from masis.cli.audit_ray import say_repeats
from masis.datasets.lake_repeats import Repeat, Repeats


def test_ids_in_several_rows_are_named_with_files_and_rows(capsys: pytest.CaptureFixture[str]) -> None:
    hostile = Repeat("case\x1b[31m-2", (("a.jsonl", 0, 4), ("b.jsonl", 67_108_864, 9)))
    say_repeats(Repeats(12, (Repeat("case-1", (("a.jsonl", 0, 1), ("b.jsonl", 0, 7))), hostile)))
    told = capsys.readouterr().err
    assert "12 ids occur in several rows; each row was audited:" in told
    assert "  case-1: a.jsonl, row 1; b.jsonl, row 7" in told
    assert "a.jsonl, row 4; b.jsonl, row 9 from 67,108,864" in told
    assert "\x1b" not in told
    assert "and 10 more" in told


def test_nothing_is_said_where_no_id_is_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    say_repeats(Repeats(0, ()))
    assert capsys.readouterr().err == ""
