"""The choice of the verifier: what a model is, its download with progress, its use, and errors that
say what to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import huggingface_hub.constants
import pytest

from masis.api import roles
from masis.llm.model_files import ModelFiles, model_files
from masis.offline.roles.verifier import OfflineVerifier
from masis.schema.audit import Claim, ClaimCheck
from masis.schema.case import Evidence
from masis.services import Workbench
from masis.services.background import BackgroundTasks
from masis.settings import Settings
from masis.ui.admin import settings_page
from masis.ui.admin.settings_page import (
    OTHER,
    ModelDownload,
    config_line,
    describe_verifier,
    verifier_string,
)
from masis.ui.queue.overview import unconfirmed_text
from tests.integrations.tiny_hub import files_of, hub
from tests.integrations.tiny_models import save_model
from tests.reviewing import ADA
from tests.rooms import needs_integrations
from tests.ui.conftest import open_page, texts
from tests.waiting import until

pytestmark = needs_integrations
CARD = "---\nlicense: mit\nlanguage: en\n---\n"


def local_files() -> ModelFiles:
    files = model_files()
    assert files is not None
    return files


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))


def test_a_model_is_shown_with_its_license_location_and_data_flow(tmp_path: Path) -> None:
    folder = save_model(tmp_path / "nli", card=CARD)
    look = describe_verifier(f"local:{folder}", Settings())
    said = "\n".join(look.facts)
    assert "mit" in said
    assert str(folder / "model.onnx") in said
    assert "Nothing leaves this machine." in said
    sent = describe_verifier("ollama:llama3.3", Settings())
    assert "sent to http://127.0.0.1:11434" in " ".join(sent.facts)


def test_a_missing_model_is_offered_for_download_and_an_unknown_one_is_named() -> None:
    assert describe_verifier("local:org/name", Settings()).absent == "org/name"
    assert "no such folder" in describe_verifier("local:./nowhere", Settings()).error
    assert "key" in describe_verifier("openai:gpt-4o", Settings()).error


@pytest.mark.parametrize(
    ("model", "first", "expected"),
    [
        ("local:a/b", True, "offline,local:a/b"),
        ("local:a/b", False, "local:a/b"),
        ("offline", True, "offline"),
        (" openai:m ", True, "offline,openai:m"),
        ("offline,openai:m", True, "offline,openai:m"),
    ],
)
def test_offline_checks_can_run_first(model: str, first: bool, expected: str) -> None:
    assert verifier_string(model, offline_first=first) == expected


def test_the_shown_settings_line_round_trips() -> None:
    import tomllib

    assert tomllib.loads(config_line("offline,local:C:\\m"))["verifier"] == "offline,local:C:\\m"


def test_a_download_shows_its_progress_and_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = save_model(tmp_path / "nli", card=CARD)
    with hub(files_of(folder)) as endpoint:
        monkeypatch.setattr(ModelDownload, "endpoint", endpoint)
        download = ModelDownload(local_files(), "org/name")
        download.start()
        until(lambda: download.over, "the download")
    assert not download.failed
    assert download.step.done == download.step.total > 0
    assert describe_verifier("local:org/name", Settings()).facts


def test_a_failed_download_shows_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ModelDownload, "endpoint", "http://127.0.0.1:9")
    download = ModelDownload(local_files(), "org/name")
    download.start()
    until(lambda: download.over, "the download")
    assert "copy its folder here" in (download.failed or "")


@pytest.mark.apptest
def test_a_chosen_model_is_used_for_later_audits(
    audited_workbench: Workbench, tmp_path: Path
) -> None:
    folder = save_model(tmp_path / "nli", card=CARD)
    app = open_page("settings")
    assert "one setting away" in " ".join(caption.value for caption in app.caption)
    app.selectbox(key="verifier-choice").select(OTHER).run()
    app.text_input(key="verifier-name").input(f"local:{folder}").run()
    assert str(folder / "model.onnx") in texts(app)
    app.button(key="verifier-use").click().run()
    assert not app.exception
    assert f"In use: offline,local:{folder}" in texts(app)
    assert "chosen on this page" in texts(app.run())
    assert any(f'verifier = "offline,local:{folder}"' in code.value for code in app.code)


@pytest.mark.apptest
def test_the_page_downloads_a_model(
    audited_workbench: Workbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hub(files_of(save_model(tmp_path / "nli", card=CARD))) as endpoint:
        monkeypatch.setattr(ModelDownload, "endpoint", endpoint)
        monkeypatch.setattr(
            settings_page, "DOWNLOADS", downloads := BackgroundTasks[ModelDownload]()
        )
        app = open_page("settings")
        app.selectbox(key="verifier-choice").select(OTHER).run()
        app.text_input(key="verifier-name").input("local:org/name").run()
        app.button(key="verifier-download").click().run()
        until(
            lambda: (begun := downloads.get("org/name")) is not None and begun.over, "the download"
        )
    app.run()
    assert not app.exception
    assert "License: mit" in texts(app)


class Abstaining(OfflineVerifier):
    """An offline verifier that can't decide anything."""

    def verify(
        self, claims: Sequence[Claim], evidence: Sequence[Evidence], question: str = ""
    ) -> tuple[ClaimCheck, ...]:
        return tuple(
            ClaimCheck(claim=claim, verdict="unverifiable", support=0.5, confidence=None)
            for claim in claims
        )


@pytest.mark.apptest
def test_the_overview_links_unconfirmed_claims_to_choosing_a_verifier(
    audited_workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(roles, "OfflineVerifier", Abstaining)
    case = audited_workbench.store.cases.get("law-01")
    run = audited_workbench.audits.audit(ADA, case, settings=Settings(max_iterations=1))
    assert run.unconfirmed_offline == len(run.iterations[0].claims) > 0
    app = open_page("overview")
    assert "claims that the offline checks couldn't confirm" in texts(app)
    assert "settings" in {link.proto.page for link in app.get("page_link")}
    # the appeal is no issue of a case
    assert "not confirmed by" not in texts(open_page("review", case=case.id))


def test_settings_chosen_on_the_page_apply_to_new_audits(
    audited_workbench: Workbench, tmp_path: Path
) -> None:
    chosen = Settings(verifier=f"local:{save_model(tmp_path / 'nli')}")
    audited_workbench.use_settings(ADA, chosen)
    assert audited_workbench.settings == chosen
    assert unconfirmed_text(audited_workbench) == ""
