"""Verifier models on this machine: found, downloaded, understood or refused with a hint, and used
without PyTorch.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import huggingface_hub.constants
import numpy as np
import pytest
from click.testing import CliRunner

from masis import Settings, run_audit, verify_claims
from masis.api.roles import (
    addresses,
    check_models,
    estimate,
    pin_versions,
    probe_model,
    uses_models,
)
from masis.cli import main
from masis.errors import MissingExtra, MissingModel, SettingsError, StepError
from masis.integrations.local import model_files, plugin, scoring, verifier
from masis.integrations.local.forms import PAIR, Head, OutputLabels
from masis.integrations.local.scoring import _pair_scores
from masis.integrations.local.verifier import (
    MOST,
    WINDOW_WORDS,
    Window,
    choose,
    verdict_of,
    words_of,
)
from masis.schema.audit import Claim
from masis.schema.case import Evidence
from masis.schema.run import Run
from tests.cases import case_of
from tests.integrations.tiny_hub import files_of, hub
from tests.integrations.tiny_models import NLI, save_model

EVIDENCE = [{"id": "1", "text": "The bridge is 120 metres long. It was opened in 1931."}]
ANSWER = (
    "The bridge is proven 120 metres long [1]. It was refuted opened in 1931 [1]. The bridge is"
    " nothing."
)
CASE = case_of(ANSWER, {"1": EVIDENCE[0]["text"]})
CARD = "---\nlicense: mit\nlanguage:\n- en\n- de-AT\n---\n# A model\n"


@pytest.fixture(autouse=True)
def _empty_caches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    scoring._load_scorer.cache_clear()


@pytest.fixture
def nli(tmp_path: Path) -> Path:
    return save_model(tmp_path / "nli", card=CARD)


def verdicts(folder: Path, *claims: str, **settings: Any) -> list[str]:
    found = verify_claims(claims, EVIDENCE, Settings(verifier=f"local:{folder}", **settings))
    return [check.verdict for check in found]


def scorer_with(folder: Path, logits: Callable[[scoring.EncodedBatch], Any]) -> scoring.LocalScorer:
    """The model's scorer with another engine."""
    whole = scoring.load(str(folder))
    return scoring.LocalScorer(whole.labels, whole.encoder, logits, whole.model)


# an audit by such a model


def test_a_local_model_judges_and_its_file_is_recorded(nli: Path) -> None:
    run = run_audit(CASE, Settings(verifier=f"local:{nli}", max_iterations=1))
    first = run.iterations[0]
    assert [check.verdict for check in first.claims] == ["supported", "contradicted", "unsupported"]
    assert {check.judged_by for check in first.claims} == {f"local:{nli}"}
    file = nli / "model.onnx"
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    (model,) = run.versions.local_models
    assert (model.file, model.sha256, model.licence, model.languages) == (
        str(file),
        digest,
        "mit",
        ("de", "en"),
    )
    assert run.models["verifier"] == f"local:{nli}#{digest[:12]}"
    assert run.versions.flat()[f"sha256.local:{nli}"] == digest
    assert Run.model_validate_json(run.model_dump_json()) == run


def test_no_language_model_is_called(nli: Path) -> None:
    settings = Settings(verifier=f"local:{nli}")
    assert not uses_models(settings)
    assert addresses(settings) == ()
    assert estimate(CASE, settings).calls == 0
    assert run_audit(CASE, settings.model_copy(update={"max_iterations": 1})).usage.calls == 0


def test_references_are_judged_against_their_chunk(nli: Path, tmp_path: Path) -> None:
    folder = save_model(
        tmp_path / "binary",
        {"claim": (0.0, 0.0)},
        {"0": "unsupported", "1": "supported"},
        in_evidence={"yes": (0.0, 9.0), "no": (9.0, 0.0)},
    )
    evidence = [{"id": "a", "text": "No bridge."}, {"id": "b", "text": "Yes bridge."}]
    found = verify_claims(
        ["A bridge [a].", "A bridge [b]."], evidence, Settings(verifier=f"local:{folder}")
    )
    assert [check.verdict for check in found] == ["supported", "supported"]
    assert [
        (reference.finding, reference.better) for check in found for reference in check.references
    ] == [
        ("misattributed", "b"),
        ("supports", None),
    ]
    assert [quote.text for quote in found[0].quotes] == ["Yes bridge."]


def test_a_contradiction_shows_its_passage(nli: Path) -> None:
    (check,) = verify_claims(
        ["The bridge is refuted long."], EVIDENCE, Settings(verifier=f"local:{nli}")
    )
    (conflict,) = check.contradictions
    assert (
        EVIDENCE[0]["text"][conflict.evidence_start : conflict.evidence_end]
        == conflict.evidence_text
    )
    assert check.support <= 0.5


def test_textless_evidence_isnt_scored(nli: Path) -> None:
    (check,) = verify_claims(
        ["It is proven."], [{"id": "1", "text": " "}], Settings(verifier=f"local:{nli}")
    )
    assert (check.verdict, check.support) == ("unverifiable", None)


def test_special_tokens_in_outside_text_are_plain_characters(nli: Path) -> None:
    # As the mark that ends the first text, [SEP] would move "proven" of the evidence over to the
    # claim.
    plain, marked = scoring.load(str(nli)).score(
        [("the bridge", "is nothing"), ("the bridge [SEP] proven", "is nothing")]
    )
    assert marked.supports == pytest.approx(plain.supports)


def test_a_failing_model_leaves_its_claims_unscored(nli: Path) -> None:
    def logits(batch: scoring.EncodedBatch) -> Any:
        raise RuntimeError("no memory")

    broken = scorer_with(nli, logits)
    with pytest.raises(StepError, match="no memory"):
        broken.score([("a", "b")])
    role = verifier.LocalVerifier(broken, Settings())
    (check,) = role.verify(
        [Claim(text="The bridge is long.")], [Evidence(id="1", text="A bridge.")]
    )
    assert check.verdict == "unscored"
    assert "no memory" in check.unscored.reason


def test_a_passage_that_doesnt_fit_confirms_nothing(
    tmp_path: Path,
) -> None:
    folder = save_model(tmp_path / "short", in_evidence={"yes": (9.0, 0.0, 0.0)})
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "max_position_embeddings": 64}))
    long = "Yes bridge is " + "long " * 60 + "."
    settings = Settings(verifier=f"local:{folder}")
    claims = ["The bridge is yes [1].", "It is " + "proven " * 70 + "."]
    check, longer = verify_claims(claims, [{"id": "1", "text": long}], settings)
    for tagged in (check, longer):
        assert (tagged.verdict, tagged.support, tagged.quotes) == ("unverifiable", None, ())
        assert "longer" in (tagged.issue or "")
    assert [reference.finding for reference in check.references] == []
    evidence = [{"id": "1", "text": long}, {"id": "2", "text": "Yes bridge."}]
    beside, *_ = verify_claims(["The bridge is [1].", claims[1]], evidence, settings)
    assert (beside.verdict, beside.sources) == ("supported", ("2",))
    assert [reference.finding for reference in beside.references] == ["unchecked"]


def test_unread_passages_prevent_an_unsupported_verdict(tmp_path: Path) -> None:
    folder = save_model(tmp_path / "short")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "max_position_embeddings": 64}))
    evidence = [
        {"id": "1", "text": "The bridge " + "long " * 60},
        {"id": "2", "text": "The bridge."},
    ]
    (check,) = verify_claims(
        ["The bridge is nothing [2]."], evidence, Settings(verifier=f"local:{folder}")
    )
    assert check.verdict == "unverifiable"
    (alone,) = verify_claims(
        ["The bridge is nothing [2]."], evidence[1:], Settings(verifier=f"local:{folder}")
    )
    assert alone.verdict == "unsupported"


def test_a_partly_read_citation_isnt_called_wrong(tmp_path: Path) -> None:
    folder = save_model(
        tmp_path / "short", in_evidence={"yes": (9.0, 0.0, 0.0), "no": (0.0, 9.0, 0.0)}
    )
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "max_position_embeddings": 64}))
    other = {"id": "2", "text": "Yes bridge."}
    for rest, finding in (
        ("", "misattributed"),
        (" The bridge is " + "long " * 178 + ".", "unchecked"),
    ):
        evidence = [{"id": "1", "text": f"No bridge.{rest}"}, other]
        (check,) = verify_claims(
            ["The bridge is [1]."], evidence, Settings(verifier=f"local:{folder}")
        )
        assert (check.verdict, [reference.finding for reference in check.references]) == (
            "supported",
            [finding],
        )


def test_multi_label_scores_dont_sum_to_one(tmp_path: Path) -> None:
    folder = save_model(tmp_path / "multi", {"both": (3.0, 0.0, 3.0)})
    (found,) = scoring.load(str(folder)).score([("a", "both")])
    assert found is not None
    assert found.supports < 0.5
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(
        json.dumps({**config, "problem_type": "multi_label_classification"})
    )
    (found,) = scoring.load(str(folder)).score([("a", "both")])
    assert found is not None
    assert (found.supports, found.contradicts) == pytest.approx((0.9526, 0.9526), abs=1e-4)


@pytest.mark.parametrize("score", [float("nan"), float("inf")])
def test_a_nan_score_yields_no_verdict(tmp_path: Path, score: float) -> None:
    assert verdicts(save_model(tmp_path / "nan", {"x": (score, 0.0, 0.0)}), "The x is long.") == [
        "unscored"
    ]


# thresholds


def _window(supports: float, contradicts: float | None = None, shared: float = 0.9) -> Window:
    return Window("1", 0, 1, "x", shared, supports=supports, contradicts=contradicts)


@pytest.mark.parametrize(
    ("windows", "verdict"),
    [
        ([_window(0.75)], "supported"),
        ([_window(0.74)], "unverifiable"),
        ([_window(0.11)], "unverifiable"),
        ([_window(0.10)], "unsupported"),
        ([_window(0.05), _window(0.8)], "supported"),
        ([_window(0.05, 0.8)], "contradicted"),
        ([_window(0.15, 0.79)], "unverifiable"),
        ([_window(0.05, 0.95, shared=0.1)], "unsupported"),  # about something else
        ([_window(0.9, 0.0), _window(0.0, 0.9)], "unverifiable"),  # the windows disagree
        ([_window(0.6, 0.3), _window(0.0, 0.9)], "unverifiable"),
    ],
)
def test_verdicts_follow_the_documented_thresholds(windows: list[Window], verdict: str) -> None:
    assert verdict_of(windows, Settings()) == verdict


def test_thresholds_are_configurable(tmp_path: Path) -> None:
    folder = save_model(tmp_path / "m", {"maybe": (0.5,)}, {"0": "consistent"})
    assert verdicts(folder, "The bridge maybe.") == ["unverifiable"]
    assert verdicts(folder, "The bridge maybe.", local_supported_from=0.6) == ["supported"]
    assert verdicts(folder, "The bridge maybe.", local_unsupported_to=0.7) == ["unsupported"]


# what the outputs are


@pytest.mark.parametrize("head", ["classes", "score"])
def test_token_level_outputs_arent_read_as_claim_scores(head: Head) -> None:
    with pytest.raises(StepError, match="for every token"):
        list(_pair_scores(np.zeros((2, 7, 2)), OutputLabels(head, PAIR), 2))


def test_outputs_that_differ_from_the_configuration_are_rejected(tmp_path: Path) -> None:
    folder = save_model(tmp_path / "two", {"x": (1.0, 0.0)}, NLI)
    (check,) = verify_claims(["The x is long."], EVIDENCE, Settings(verifier=f"local:{folder}"))
    assert "id2label" in check.unscored.reason


# windows and the cache


def test_at_most_three_windows_are_scored_per_claim() -> None:
    evidence = [Evidence(id=str(n), text=f"The bridge number {n} is long. " * 40) for n in range(9)]
    found = choose("The bridge is long.", evidence)
    assert len(found) == MOST
    assert all(len(words_of(window.text)) <= WINDOW_WORDS for window in found)


def test_windows_are_chunk_passages_chosen_by_shared_words() -> None:
    filler = "Nothing of note happened in the valley that year. " * 60
    evidence = [
        Evidence(id="a", text=filler),
        Evidence(id="b", text=filler + "The bridge opened in 1931. " + filler),
    ]
    best, *_ = choose("When was the bridge opened? In 1931.", evidence)
    assert best.evidence_id == "b"
    assert "The bridge opened in 1931." in best.text
    assert evidence[1].text[best.start : best.end] == best.text


def test_cited_chunks_are_scored_first() -> None:
    evidence = [Evidence(id=str(n), text="The long bridge opened in 1931.") for n in range(5)]
    evidence.append(Evidence(id="cited", text="A tower."))
    assert "cited" in [
        window.evidence_id for window in choose("The bridge opened.", evidence, ["cited"])
    ]


def test_scripts_without_spaces_are_matched() -> None:
    evidence = [Evidence(id="a", text="天气很好。"), Evidence(id="b", text="这座桥长一百二十米。")]
    assert choose("桥长一百二十米", evidence)[0].evidence_id == "b"


def test_text_without_full_stops_is_split() -> None:
    evidence = [Evidence(id="a", text="word " * 1000 + "bridge")]
    found = choose("bridge", evidence)
    assert "bridge" in found[0].text
    assert len(words_of(found[0].text)) <= WINDOW_WORDS


def test_pair_scores_are_cached_per_model(nli: Path) -> None:
    batches: list[int] = []

    def logits(batch: scoring.EncodedBatch) -> Any:
        batches.append(len(batch.ids))
        return scoring.load(str(nli)).engine(batch)

    counted = scorer_with(nli, logits)
    pairs = [("the bridge", f"is {n} proven") for n in range(20)]
    first = counted.score([*pairs, pairs[0]])
    assert counted.score(pairs) == first[:-1]
    assert sum(batches) == 20
    assert max(batches) <= scoring.BATCH


def test_the_oldest_cached_scores_are_evicted(nli: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "MOST_SCORES", 2)
    scorer = scoring.load(str(nli))
    scorer.score(
        [("the bridge", "is long"), ("the bridge", "is proven"), ("the bridge", "is refuted")]
    )
    assert list(scorer.scores) == [("the bridge", "is proven"), ("the bridge", "is refuted")]


# names and files


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("", "doesn't name a model"),
        ("no such folder", "no such folder"),
        ("./nowhere", "no such folder or file"),
        ("nameonly", "no such folder"),
        ("org/name", "masis models get local:org/name"),
    ],
)
def test_an_invalid_model_name_shows_the_right_syntax(name: str, says: str) -> None:
    with pytest.raises(MissingModel if name == "org/name" else SettingsError, match=says):
        check_models(Settings(verifier=f"local:{name}"))


def test_a_local_model_in_another_role_is_rejected(nli: Path) -> None:
    with pytest.raises(SettingsError, match="verifier"):
        check_models(Settings(critic=f"local:{nli}"))


@pytest.mark.parametrize(
    ("remove", "says"),
    [("config.json", "config.json"), ("tokenizer.json", "weights"), ("model.onnx", "weights")],
)
def test_a_missing_file_is_named(nli: Path, remove: str, says: str) -> None:
    (nli / remove).unlink()
    with pytest.raises(SettingsError, match=says):
        check_models(Settings(verifier=f"local:{nli}"))


@pytest.mark.parametrize("broken", ["config.json", "tokenizer.json", "model.onnx"])
def test_a_broken_file_is_named_with_a_hint(nli: Path, broken: str) -> None:
    (nli / broken).write_bytes(b"\xff\x00 not what it should be")
    with pytest.raises(SettingsError, match=f"{broken}.*again"):
        scoring.load(str(nli))
    assert not probe_model(f"local:{nli}", Settings()).ok


def test_one_of_several_onnx_files_can_be_named(tmp_path: Path) -> None:
    folder = save_model(tmp_path / "several", file="onnx/model_quantized.onnx")
    found = model_files.find(str(folder / "onnx/model_quantized.onnx"))
    assert found.weights.name == "model_quantized.onnx"
    assert scoring.load(str(found.weights)).score([("a", "proven")])[0].supports > 0.9


def test_a_pinned_name_rejects_another_file(nli: Path) -> None:
    settings = pin_versions(Settings(verifier=f"local:{nli}"))
    assert settings.verifier.startswith(f"local:{nli}#")
    check_models(settings)
    save_model(nli, {"proven": (8.0, 0, 0)})
    with pytest.raises(SettingsError, match="file has changed"):
        check_models(settings)


def test_a_replaced_file_is_reloaded(nli: Path) -> None:
    assert verdicts(nli, "The bridge is proven.") == ["supported"]
    save_model(nli, {"proven": (0.0, 0.0, 9.0)}, vocabulary="the bridge is long metres 120")
    assert verdicts(nli, "The bridge is proven.") == ["contradicted"]


@pytest.mark.parametrize(
    ("card", "licence", "languages"),
    [
        (CARD, "mit", {"en", "de"}),
        (
            "---\nlanguage: multilingual\nlicense: other\nlicense_name: own-terms\n---\n",
            "own-terms",
            None,
        ),
        ("# no metadata", None, None),
        ("---\nlicense: [\n---\n", None, None),
        ("---\n- a\n---\n", None, None),
        ("---\nlanguage: 7\n---\n", None, None),
    ],
)
def test_license_and_languages_come_from_the_model_card(
    tmp_path: Path, card: str, licence: str | None, languages: set[str] | None
) -> None:
    found = model_files.model_record(model_files.find(str(save_model(tmp_path / "m", card=card))))
    assert (found.licence, found.languages) == (
        licence,
        tuple(sorted(languages)) if languages else None,
    )


def test_a_verifier_declares_its_models_languages(nli: Path) -> None:
    role = plugin.verifiers.find(str(nli), Settings()).build(None, Settings())
    assert role.languages == {"en", "de"}


def test_inspecting_a_model_doesnt_load_pytorch(nli: Path) -> None:
    code = (
        f"import sys; from masis.integrations.local import scoring; scoring.check({str(nli)!r});"
        " assert not {'torch', 'transformers', 'onnxruntime'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_missing_extra_is_named_with_an_alternative(
    nli: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (nli / "model.onnx").rename(nli / "model.safetensors")
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtra, match=r"ONNX.*pip install '\.\[local\]'"):
        check_models(Settings(verifier=f"local:{nli}"))


# the hub


def test_a_hub_model_is_downloaded_once_with_progress(nli: Path) -> None:
    steps: list[model_files.Step] = []
    files = files_of(nli) | {"pytorch_model.bin": b"large", "training_args.bin": b"x"}
    assert not model_files.is_here("org/name")
    with hub(files) as endpoint:
        found = model_files.download("org/name", steps.append, endpoint=endpoint)
    assert found.format == "onnx"
    assert found.revision == "a" * 40
    assert sorted(map(str, files_of(found.folder))) == [
        "README.md",
        "config.json",
        "model.onnx",
        "tokenizer.json",
    ]
    assert [step.done for step in steps] == sorted(step.done for step in steps)
    assert (
        steps[-1].done
        == steps[-1].total
        == sum(len(files[path.name]) for path in found.folder.iterdir())
    )
    # from the cache
    assert model_files.download("org/name", endpoint="http://127.0.0.1:9").weights == found.weights
    assert [model.name for model in model_files.downloaded_models()] == ["local:org/name"]
    assert plugin.verifiers.available(Settings()) == ("local:org/name",)


def test_an_unreachable_hub_shows_a_hint() -> None:
    with pytest.raises(SettingsError, match=r"hub failed.*copy its folder here"):
        model_files.download("org/name", endpoint="http://127.0.0.1:9")


@pytest.mark.parametrize(("status", "says"), [(401, "no such model"), (500, "hub failed")])
def test_a_hub_refusal_shows_a_hint(nli: Path, status: int, says: str) -> None:
    with hub(files_of(nli), refuse=status) as endpoint, pytest.raises(SettingsError, match=says):
        model_files.download("org/name", endpoint=endpoint)


def test_a_download_can_be_stopped_and_resumed(nli: Path) -> None:
    seen: list[model_files.Step] = []
    with hub(files_of(nli)) as endpoint:
        with pytest.raises(SettingsError, match="was stopped"):
            model_files.download(
                "org/name", seen.append, endpoint=endpoint, cancelled=lambda: len(seen) > 2
            )
        assert model_files.download("org/name", endpoint=endpoint).weights.is_file()


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"README.md": b""}, "config.json"),
        ({"config.json": b"{}"}, "no weights"),
        ({"config.json": b"{}", "pytorch_model.bin": b""}, "Pickled weights"),
    ],
)
def test_an_unsupported_repository_isnt_downloaded(files: dict[str, bytes], says: str) -> None:
    with hub(files) as endpoint, pytest.raises(SettingsError, match=says):
        model_files.download("org/name", endpoint=endpoint)


# the command line


def test_the_command_shows_a_models_kind_and_path(nli: Path) -> None:
    shown = CliRunner().invoke(main, ["models", "get", f"local:{nli}"])
    assert shown.exit_code == 0, shown.output
    for part in ("supported, contradicted or neither", "mit", "de, en", str(nli / "model.onnx")):
        assert part in shown.output
    as_json = CliRunner().invoke(main, ["models", "get", f"local:{nli}", "--json"])
    assert json.loads(as_json.stdout)["licence"] == "mit"
