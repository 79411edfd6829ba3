"""The tutorial of docs/extending.md, followed to the letter in a package of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

CASE = {
    "id": "one",
    "query": "How long is the bridge?",
    "answer": "The bridge is 120 metres long [1].",
    "evidence": [{"id": "1", "text": "The bridge is 120 metres long."}],
}


def blocks(language: str) -> list[str]:
    """The code blocks of the tutorial in this language."""
    text = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def test_the_provider_of_the_tutorial_judges_an_answer(tmp_path: Path) -> None:
    (module,), (project, config), (command,) = blocks("python"), blocks("toml"), blocks("text")
    (tmp_path / "house_models.py").write_text(module, encoding="utf-8")
    # What an installation makes of the entry point in pyproject.toml.
    installed = tmp_path / "house_models-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: house-models\nVersion: 1.0\n")
    group = project.replace('[project.entry-points."masis.providers"]', "[masis.providers]")
    (installed / "entry_points.txt").write_text(group.replace('"', ""), encoding="utf-8")
    (tmp_path / "masis.toml").write_text(config, encoding="utf-8")
    (tmp_path / "cases.jsonl").write_text(json.dumps(CASE) + "\n", encoding="utf-8")
    environment = {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}", "MASIS_CONFIG": "masis.toml"}
    program, *arguments = command.split()
    assert program == "masis"
    done = subprocess.run(
        [sys.executable, "-m", "masis.cli", *arguments, "--out", "runs.jsonl", "--db", "a.db"],
        cwd=tmp_path,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    run = json.loads((tmp_path / "runs.jsonl").read_text(encoding="utf-8"))
    assert run["models"]["critic"] == "mine:judge-1"
    assert run["iterations"][0]["critique"]["critique_reasoning"] == "Read by the house model."
