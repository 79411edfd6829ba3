"""What goes wrong in a worker stands in the server's output, in the form that the settings name."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
SAID = """
import logging
from masis.ui.shell.worker import show_log
show_log()
logging.getLogger("masis.x").warning("it broke")
"""


def said(**environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", SAID],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(ROOT), **environment},
    )
    return done.stderr


def test_a_line_is_words_unless_json_is_asked_for() -> None:
    assert said() == "it broke\n"
    line = json.loads(said(MASIS_LOG_FORMAT="json"))
    assert (line["level"], line["logger"], line["message"]) == ("WARNING", "masis.x", "it broke")


@pytest.mark.parametrize("wrong", ["yaml", ""])
def test_a_form_that_is_none_does_not_silence_the_log(wrong: str) -> None:
    assert "it broke" in said(MASIS_LOG_FORMAT=wrong)
