"""docs/configuration.md says what the settings say, and its example is one."""

from __future__ import annotations

import pytest

from masis.settings import YAML_KEYS, Settings, load
from tools import configuration


def test_the_page_is_current() -> None:
    current = configuration.PAGE.read_text(encoding="utf-8")
    assert current == configuration.page(), "run python tools/configuration.py"


def test_every_setting_has_its_line() -> None:
    page = configuration.page()
    for name in Settings.model_fields:
        assert f"\n| `{name}`" in page


@pytest.mark.spec("DRAFT-CRITIQUE-CONFIG")
def test_every_key_of_the_spec_has_its_line() -> None:
    page = configuration.page()
    for key, name in YAML_KEYS.items():
        assert f"\n| `{key}` | `{name}` | `MASIS_RETRIEVAL__CRITIQUE__" in page


def test_its_example_says_what_it_says() -> None:
    found = load(file=configuration.EXAMPLE, environment={})
    told = found.settings
    assert (told.critic, told.reviser, told.max_iterations) == ("vllm:llama-3.3-70b", "offline", 2)
    assert (told.strictness, told.draft_max_revisions, told.draft_min_length) == ("strict", 2, 80)
    assert (told.screening_max_rounds, told.review_threshold) == (3, 0.8)
    assert told.providers["vllm"].concurrency == 8
    assert {found.origins[name].line for name in YAML_KEYS.values()} == set(range(24, 32))


def test_every_variable_it_shows_is_understood() -> None:
    shown = [line.strip() for line in configuration.INTRODUCTION.splitlines() if line.startswith("    MASIS_")]
    environment = dict(line.split("=", 1) for line in shown)
    assert len(environment) == 5
    found = load(environment={name: value.strip("'") for name, value in environment.items()})
    told = found.settings
    assert (told.max_iterations, told.screening_max_rounds, told.draft_auto_revise) == (2, 3, True)
    assert told.providers["vllm"].concurrency == 8
    assert not found.warnings
