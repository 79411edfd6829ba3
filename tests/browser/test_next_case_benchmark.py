"""The benchmark of the next case runs, here with few: each press of one key is one decision and draws another case."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser.conftest import ROOT


@pytest.mark.soak
def test_the_benchmark_of_the_next_case_approves_by_one_key_and_counts_its_decisions(
    browser: Browser, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "benchmarks/next_case.py", "--cases", "70", "--decide", "2", "--folder", str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert "decisions that are not one a case" not in done.stdout, done.stdout + done.stderr
    times = re.search(
        r"2 cases approved by one key each, 70 in the store: .* median (\d+) ms, 95% (\d+) ms, most (\d+) ms",
        done.stdout,
    )
    assert times, done.stdout + done.stderr
    median, high, most = map(int, times.groups())
    assert 0 < median <= high <= most
