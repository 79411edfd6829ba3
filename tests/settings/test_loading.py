"""Where settings come from, and what a wrong one is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from masis.errors import SettingsError
from masis.settings import Origin, Settings, config_file, database_path, load


def test_flags_outrank_the_environment_which_outranks_the_file(tmp_path: Path) -> None:
    file = tmp_path / "masis.toml"
    file.write_text("max_iterations = 2\nreview_threshold = 0.5\nimprovement_threshold = 0.2\n", encoding="utf-8")
    environment = {"MASIS_MAX_ITERATIONS": "4", "MASIS_REVIEW_THRESHOLD": "0.6"}
    found = load({"max_iterations": 5}, environment=environment, file=file)
    assert (found.settings.max_iterations, found.settings.review_threshold) == (5, 0.6)
    assert found.settings.improvement_threshold == 0.2
    assert [found.origins[name].kind for name in ("max_iterations", "review_threshold", "improvement_threshold")] == [
        "flag",
        "environment",
        "file",
    ]
    assert found.origins["strictness"] == Origin("default", "")


def test_an_unknown_key_is_named_with_the_nearest_right_one(tmp_path: Path) -> None:
    file = tmp_path / "masis.toml"
    file.write_text("max_iteration = 2\n", encoding="utf-8")
    with pytest.raises(SettingsError, match=r"masis\.toml.*'max_iteration'.*'max_iterations'"):
        load(file=file, environment={})


def test_a_wrong_value_is_named_with_its_place() -> None:
    with pytest.raises(SettingsError, match=r"MASIS_MAX_ITERATIONS.*'nine'"):
        load(environment={"MASIS_MAX_ITERATIONS": "nine"})


def test_a_file_that_is_no_toml_is_named(tmp_path: Path) -> None:
    file = tmp_path / "masis.toml"
    file.write_text("max_iterations == 2", encoding="utf-8")
    with pytest.raises(SettingsError, match=r"masis\.toml"):
        load(file=file, environment={})


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(SettingsError, match="MASIS_CONFIG"):
        load(file=Path("/nowhere/masis.toml"), environment={})


def test_the_configuration_file_is_the_one_named() -> None:
    assert config_file({"MASIS_CONFIG": "/etc/masis.toml"}) == Path("/etc/masis.toml")


def test_the_database_is_the_one_named_first_by_the_flag_then_by_the_environment() -> None:
    environment = {"MASIS_DB": "/data/cases.db"}
    assert database_path("/other.db", environment) == Path("/other.db")
    assert database_path(None, environment) == Path("/data/cases.db")
    assert database_path(None, {}).name == "masis.db"


def test_the_defaults_are_the_constants_of_the_specs() -> None:
    found = Settings()
    assert (found.invalid_citation_penalty, found.uncited_claim_penalty) == (0.5, 0.9)
    assert (found.max_iterations, found.improvement_threshold, found.loop_deadline_s) == (3, 0.05, 90)
    weights = (found.faithfulness_weight, found.relevance_weight, found.completeness_weight, found.reasoning_weight)
    assert weights == (0.35, 0.25, 0.25, 0.15)
    assert (found.hallucination_faithfulness_cap, found.uncited_faithfulness_cap) == (0.4, 0.5)
    assert (found.many_uncited_faithfulness_cap, found.uncited_cap_from, found.many_uncited_cap_from) == (0.3, 5, 10)
    assert found.strictness == "moderate"
