"""The benchmark of a million cases runs, here with few: what it measures is what went in and came out."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_benchmark_of_a_million_cases_measures_import_and_export(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "benchmarks/million.py", "--cases", "2000", "--folder", str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "What came out is what went in, byte for byte." in done.stdout
    rows = re.findall(
        r"^(import|export cases) +2,000 cases +[\d.]+ s +[\d.]+ s CPU +memory: first tenth +(\d+) MB, "
        r"last +(\d+) MB, peak +(\d+) MB$",
        done.stdout,
        re.MULTILINE,
    )
    assert [name for name, *_ in rows] == ["import", "export cases"]
    for _name, first, last, peak in rows:
        # samples of a moment, and the kernel's own peak, which counts pages in batches
        assert 0 < int(first) <= 1.1 * int(peak)
        assert 0 < int(last) <= 1.1 * int(peak)
    assert not list(tmp_path.iterdir())
