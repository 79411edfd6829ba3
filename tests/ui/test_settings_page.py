"""Settings: nothing is left out, values say where they come from, and a fault is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from masis.errors import SettingsError
from masis.services import Workbench
from masis.settings import load
from masis.ui.admin.settings_page import setting_groups
from tests.ui.conftest import OpenPage, texts


def test_a_value_says_where_it_comes_from(tmp_path: Path) -> None:
    file = tmp_path / "masis.toml"
    file.write_text("strictness = 'strict'\n", encoding="utf-8")
    groups = setting_groups(load(environment={"MASIS_MAX_ITERATIONS": "2"}, file=file))
    rows = {row["name"]: row for group in groups for row in group["rows"]}
    assert (rows["max_iterations"]["value"], rows["max_iterations"]["origin"]["text"]) == ("2", "environment")
    assert rows["max_iterations"]["origin"]["meaning"] == "MASIS_MAX_ITERATIONS"
    assert (rows["strictness"]["value"], rows["strictness"]["default"]) == ("strict", "moderate")
    assert str(file) in rows["strictness"]["origin"]["meaning"]
    assert rows["critic"]["origin"]["text"] == "default"
    assert rows["max_iterations"]["default"] == "3"
    assert not rows["critic"]["changed"]


def test_what_lies_in_tables_is_shown_with_its_origin_and_nothing_secret(tmp_path: Path) -> None:
    file = tmp_path / "masis.toml"
    file.write_text("[providers.vllm]\naddress = 'http://me:pass@host:1/v1'\n", encoding="utf-8")
    groups = setting_groups(load(environment={"MASIS_PROVIDERS__VLLM__CONCURRENCY": "4"}, file=file))
    rows = {row["name"]: row for group in groups for row in group["rows"]}
    assert rows["providers.vllm.address"]["value"] == "http://host:1/v1"
    assert rows["providers.vllm.address"]["origin"]["meaning"] == f"{file}:2"
    assert rows["providers.vllm.concurrency"]["origin"]["text"] == "environment"
    assert rows["providers.vllm.concurrency"]["default"] == ""


def test_the_page_names_the_database_and_leads_to_health_and_retention(
    audited_workbench: Workbench, open_page: OpenPage
) -> None:
    app = open_page("settings")
    assert str(audited_workbench.database) in texts(app)
    assert {link.proto.page for link in app.get("page_link")} >= {"health", "retention"}


def test_settings_changed_since_the_start_are_told(
    audited_workbench: Workbench, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = open_page("settings")
    assert "have changed since" not in texts(app)
    monkeypatch.setenv("MASIS_MAX_ITERATIONS", "2")
    app.run()
    assert "have changed since" in texts(app)


def test_a_setting_that_makes_no_sense_is_named_on_the_page(
    audited_workbench: Workbench, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MASIS_MAX_ITERATIONS", "many")
    said = texts(open_page("queue"))
    assert "A setting can't be used" in said
    assert "MASIS_MAX_ITERATIONS" in said
    with pytest.raises(SettingsError):
        load()
