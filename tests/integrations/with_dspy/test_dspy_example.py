"""The documented example runs as it is written."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from masis.integrations.dspy import agents, programs
from masis.schema.providers import ProviderSettings
from masis.settings import Settings
from tests.cli.running import example
from tests.serving_models import ModelServer

ROOT = Path(__file__).resolve().parents[3]


def test_the_example_runs_as_written(tmp_path: Path, server: ModelServer) -> None:
    (tmp_path / "masis.toml").write_text(f'[providers.scripted]\naddress = "{server.address}"\n')
    ran = example("dspy/improve.py", "scripted:m")
    assert "metres" in ran.stdout
    assert "dspy:example@1" in ran.stdout
    assert programs.program_names(programs.folder()) == ["example"]


def test_the_modules_of_the_guide_run_as_written(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    guide = (ROOT / "docs" / "frameworks.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)
    (block,) = [block for block in blocks if "masis.integrations.dspy" in block]
    providers = {"openai": ProviderSettings(address=server.address)}

    class Served(Settings):
        def __init__(self, **given: Any) -> None:
            super().__init__(**({"providers": providers} | given))

    monkeypatch.setenv("OPENAI_API_KEY", "sk-loopback")
    monkeypatch.setattr(agents, "Settings", Served)
    names: dict[str, Any] = {}
    exec(block, names)
    assert names["found"].run.usage.calls == len(server.requests) > 0
