"""Settings: nothing is left out, values say where they come from, and an error is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from masis.errors import SettingsError
from masis.services import Workbench
from masis.settings import Loaded, load
from masis.ui.admin.settings_page import settings_frame
from masis.views.markdown import escaped
from tests.ui.conftest import OpenPage, texts


def drawn(loaded: Loaded) -> dict[str, tuple[str, str]]:
    """Value and origin of every setting, by its name."""
    frame = settings_frame(loaded)
    return {row["Setting"].strip("`"): (row["Value"], row["Set by"]) for _, row in frame.iterrows()}


def test_a_value_says_where_it_comes_from(tmp_path: Path) -> None:
    file = tmp_path / "masis.toml"
    file.write_text("strictness = 'strict'\n", encoding="utf-8")
    shown = drawn(load(environment={"MASIS_MAX_ITERATIONS": "2"}, file=file))
    assert shown["max_iterations"] == (
        "**:blue[2]** (default 3)",
        f":blue-badge[environment] {escaped('MASIS_MAX_ITERATIONS')}",
    )
    value, origin = shown["strictness"]
    assert value == "**:blue[strict]** (default moderate)"
    assert escaped(str(file)) in origin
    assert shown["critic"] == ("offline", "default")


def test_what_lies_in_tables_is_shown_with_its_origin_and_nothing_secret(tmp_path: Path) -> None:
    file = tmp_path / "masis.toml"
    file.write_text("[providers.vllm]\naddress = 'http://me:pass@host:1/v1'\n", encoding="utf-8")
    shown = drawn(load(environment={"MASIS_PROVIDERS__VLLM__CONCURRENCY": "4"}, file=file))
    value, origin = shown["providers.vllm.address"]
    assert escaped("http://host:1/v1") in value
    assert escaped(str(file)) in origin
    value, origin = shown["providers.vllm.concurrency"]
    assert value == "**:blue[4]**"
    assert origin.startswith(":blue-badge[environment]")


def test_the_page_names_the_database_and_leads_to_health_and_retention(
    audited_workbench: Workbench, open_page: OpenPage
) -> None:
    app = open_page("settings")
    assert str(audited_workbench.database) in texts(app)
    assert {link.proto.page for link in app.get("page_link")} >= {"health", "retention"}


def test_settings_changed_since_the_start_are_reported(
    audited_workbench: Workbench, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = open_page("settings")
    assert "has changed since" not in texts(app)
    monkeypatch.setenv("MASIS_MAX_ITERATIONS", "2")
    app.run()
    assert "has changed since" in texts(app)


def test_a_setting_that_makes_no_sense_is_named_on_the_page(
    audited_workbench: Workbench, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MASIS_MAX_ITERATIONS", "many")
    said = texts(open_page("queue"))
    assert "A setting can't be used" in said
    assert "MASIS_MAX_ITERATIONS" in said
    with pytest.raises(SettingsError):
        load()
