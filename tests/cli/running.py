"""Cases for the command line, and the command line as a separate process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

from click.testing import Result

from masis.schema.case import Case
from masis.services import Workbench
from masis.settings import Settings
from tests.reviewing import ADA

ROOT = Path(__file__).resolve().parents[2]
Masis = Callable[..., Result]
"""The type of the fixture ``masis``, which runs the command with arguments."""


def case(identifier: str, **changes: Any) -> dict[str, Any]:
    """Return a small case with one fabricated reference; ``...`` removes a field."""
    fields = {
        "id": identifier,
        "query": "How long is the bridge?",
        "answer": "The bridge is 120 metres long [1]. It was opened in 1931 [9].",
        "evidence": [
            {"id": "1", "text": "The bridge is 120 metres long."},
            {"id": "2", "text": "It opened in 1931."},
        ],
    }
    return {key: value for key, value in (fields | changes).items() if value is not ...}


def lines(*cases: dict[str, Any]) -> bytes:
    """Return cases as JSON Lines."""
    return b"".join(json.dumps(case).encode() + b"\n" for case in cases)


def desk(path: Path, *cases: dict[str, Any], settings: Settings | None = None) -> Workbench:
    """Return a workbench on a new database with these cases, each audited."""
    opened = Workbench.open(path, settings)
    for case in map(Case.model_validate, cases):
        opened.cases.add_one(ADA, case)
        opened.audits.audit(ADA, case)
    return opened


def start(
    *arguments: str | Path | int,
    environment: Mapping[str, str] | None = None,
    output: int | IO[str] = subprocess.PIPE,
    **options: Any,
) -> subprocess.Popen[str]:
    """Start ``masis`` as a separate process that prints to ``output``."""
    return subprocess.Popen(
        [sys.executable, "-m", "masis.cli", *map(str, arguments)],
        stdout=output,
        stderr=output,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})},
        **options,
    )


def example(script: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run an example of the documentation as written, until it ends."""
    done = subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "examples" / script), *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )
    assert done.returncode == 0, done.stderr
    return done
