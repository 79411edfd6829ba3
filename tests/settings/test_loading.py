"""Where settings come from, and what the error about a wrong one says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from masis.errors import SettingsError
from masis.settings import LoadedSettings, SettingOrigin, Settings, config_file, database_path, load
from masis.settings.names import YAML_KEYS
from masis.settings.sources import MAX_SHOWN_PROBLEMS, WEIGHTS

KEY = "sk-proj-a1b2c3d4e5f6g7h8"


def load_errors(text: str = "", tmp_path: Path | None = None, **more: Any) -> list[str]:
    """The errors about these settings, without the folder of the file."""
    if tmp_path is not None:
        (tmp_path / "masis.toml").write_text(text, encoding="utf-8")
        more["file"] = tmp_path / "masis.toml"
    with pytest.raises(SettingsError) as raised:
        load(**{"environment": {}, **more})
    return str(raised.value).replace(f"{tmp_path}/", "").splitlines()


def read(text: str, tmp_path: Path, **more: Any) -> LoadedSettings:
    """The settings of a file of this text."""
    (tmp_path / "masis.toml").write_text(text, encoding="utf-8")
    return load(**{"environment": {}, "file": tmp_path / "masis.toml", **more})


def test_flags_override_the_environment_and_the_file(tmp_path: Path) -> None:
    file = tmp_path / "masis.toml"
    file.write_text(
        "max_iterations = 2\nreview_threshold = 0.5\nimprovement_threshold = 0.2\n",
        encoding="utf-8",
    )
    environment = {"MASIS_MAX_ITERATIONS": "4", "MASIS_REVIEW_THRESHOLD": "0.6"}
    found = load({"max_iterations": 5}, environment=environment, file=file)
    assert (found.settings.max_iterations, found.settings.review_threshold) == (5, 0.6)
    assert found.settings.improvement_threshold == 0.2
    assert [
        found.origins[name].kind
        for name in ("max_iterations", "review_threshold", "improvement_threshold")
    ] == [
        "flag",
        "environment",
        "file",
    ]
    assert found.origins["strictness"] == SettingOrigin("default", "")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (
            "max_iteration = 2",
            "there is no setting 'max_iteration'. Did you mean 'max_iterations'?",
        ),
        (
            "Max_Iterations = 2",
            "there is no setting 'Max_Iterations'. Did you mean 'max_iterations'?",
        ),
        ("autorevise = true", "there is no setting 'autorevise'. Did you mean 'autoRevise'?"),
        ("qqq = 2", "there is no setting 'qqq'."),
        ("[lop]", "there is no setting 'lop'. Did you mean 'loop'?"),
        ("loop = 3", "'loop' is a table of settings. Write [loop], and KEY = VALUE below."),
        (
            "[loop]\nstrictness = 'strict'",
            "there is no setting 'loop.strictness'. Did you mean 'claims.strictness'?",
        ),
        (
            "[loop]\nmax_iteratons = 2",
            "there is no setting 'loop.max_iteratons'. Did you mean 'loop.max_iterations'?",
        ),
        ("[screening]\nmax_round = 2", "Did you mean 'screening.max_rounds'?"),
        ("[critique]", "Did you mean 'retrieval.critique'?"),
        ("[retrieval.critiqe]", "Did you mean 'retrieval.critique'?"),
        (
            "[retrieval.critique]\nmindraftlength = 5",
            "Did you mean 'retrieval.critique.minDraftLength'?",
        ),
        ("[retrieval.critique]\nzz = 5", "There are: enabled, defaultStrictness, checkFactual"),
        ("max_iterations = 9", "9 is not a whole number from 1 to 5. The default is 3."),
        ("max_iterations = 2.5", "2.5 is not a whole number from 1 to 5."),
        ("max_iterations = true", "true is not a whole number from 1 to 5."),
        ("max_iterations = '2'", "'2' is not a whole number from 1 to 5."),
        ("check_factual = 'false'", "'false' is not true or false. The default is true."),
        ("[retrieval.critique]\nenabled = 1", "1 is not true or false."),
        ("[providers.vllm]\nconcurrency = '3'", "'3' is not a whole number from 1 to 1000."),
        ("max_iterations = [1]", "a list is not a whole number from 1 to 5."),
        ("review_threshold = 1.1", "1.1 is not a number from 0 to 1."),
        ("review_threshold = nan", "nan is not a number from 0 to 1."),
        ("sample_temperature = nan", "nan is not a number from 0 to 2."),
        ("call_deadline_s = inf", "inf is not a number above 0, of at most 3600."),
        ("call_deadline_s = nan", "nan is not a number above 0"),
        ("draft_min_length = -1", "-1 is not a whole number of at least 0."),
        ("check_factual = 'maybe'", "'maybe' is not true or false."),
        (
            "strictness = 'strickt'",
            "'strickt' is not one of lenient, moderate, strict. Did you mean 'strict'?",
        ),
        ("strictness = 'STRICT'", "Did you mean 'strict'?"),
        ("strictness = 5", "5 is not one of lenient, moderate, strict."),
        ("critic = 5", "5 is not text."),
        ("providers = 5", "this is not a table"),
        (
            "providers.vllm = 'http'",
            "is not a table. Write [providers.NAME], and KEY = VALUE below.",
        ),
        (
            "[providers.vllm]\nbase_url = 'http://h/v1'",
            "Did you mean 'address'? There are: kind, address, key_env",
        ),
        ("[providers.vllm]\nconcurency = 3", "Did you mean 'concurrency'?"),
        ("[providers.vllm]\nconcurrency = 0", "0 is not a whole number from 1 to 1000."),
        (
            "[providers.vllm]\nkind = 'opnai'",
            "'opnai' is not one of openai, anthropic. Did you mean 'openai'?",
        ),
        (
            "[prices.'openai:gpt-4o']\ninput = 1",
            "has no 'output', which is a number of at least 0.",
        ),
    ],
)
def test_file_errors_are_reported_with_a_correction(line: str, told: str, tmp_path: Path) -> None:
    lines = load_errors(f"# first\n\n{line}\n", tmp_path)
    assert len(lines) == 1
    assert told in lines[0]
    assert lines[0].startswith("masis.toml")


def test_all_errors_are_reported_together(tmp_path: Path) -> None:
    text = "max_iteration = 2\nstrictness = 'strickt'\n"
    told = load_errors(
        text, tmp_path, environment={"MASIS_EVALUATE": "evry"}, flags={"judge_samples": "0"}
    )
    assert [line.split(": ")[0] for line in told] == [
        "masis.toml",
        "masis.toml, strictness",
        "MASIS_EVALUATE",
        "--set judge_samples",
    ]


def test_only_the_first_errors_are_listed_and_the_rest_counted(tmp_path: Path) -> None:
    told = load_errors("\n".join(f"zz{number} = 1" for number in range(30)), tmp_path)
    assert len(told) == MAX_SHOWN_PROBLEMS + 1
    assert told[-1] == "and 10 more."


@pytest.mark.parametrize(
    "text",
    [
        f"openai_api_key = '{KEY}'",
        f"'{KEY}' = 1",
        f"strictness = '{KEY}'",
        f"max_iterations = '{KEY}'",
        f"[retrieval.critique]\nkey = '{KEY}'",
        f"[loop]\n'{KEY}' = 2",
        f"[providers.vllm]\napi_key = '{KEY}'",
        f"[providers.vllm]\nkey_env = '{KEY}'",
        f"[providers.vllm]\nkind = '{KEY}'",
        f"providers = '{KEY}'",
        f"providers.vllm = '{KEY}'",
        f"[providers.vllm]\naddress = ['{KEY}']",
        f"[prices.m]\ninput = '{KEY}'\noutput = 1",
        f"strictness = 'strict'\n[claims]\nstrictness = '{KEY}'",
        f"loop = '{KEY}'",
        f"max_iterations = {KEY}",
    ],
)
def test_possible_keys_are_never_repeated_in_errors(text: str, tmp_path: Path) -> None:
    assert "a1b2c3" not in "".join(load_errors(text, tmp_path))


def test_tables_and_short_names_set_the_settings(tmp_path: Path) -> None:
    text = """
max_retries = 1
[loop]
max_iterations = 2
[screening]
max_rounds = 3
screening_retrieve = 7
[citations]
mode = "literal"
[models]
critic = "openai"
"""
    found = read(text, tmp_path)
    told = found.settings
    assert (
        told.max_retries,
        told.max_iterations,
        told.screening_max_rounds,
        told.screening_retrieve,
    ) == (1, 2, 3, 7)
    assert (told.citation_mode, told.critic) == ("literal", "openai")
    assert found.origins["screening_max_rounds"] == SettingOrigin(
        "file", str(tmp_path / "masis.toml")
    )
    assert found.file == tmp_path / "masis.toml"


@pytest.mark.spec("DRAFT-CRITIQUE-CONFIG")
def test_the_specs_names_are_accepted(tmp_path: Path) -> None:
    text = """
[retrieval.critique]
enabled = false
defaultStrictness = "strict"
checkFactual = false
checkCompleteness = false
checkContradictions = false
autoRevise = true
maxRevisions = 2
minDraftLength = 80
"""
    found = read(text, tmp_path)
    told = {key: getattr(found.settings, name) for key, name in YAML_KEYS.items()}
    assert told == {
        "enabled": False,
        "defaultStrictness": "strict",
        "checkFactual": False,
        "checkCompleteness": False,
        "checkContradictions": False,
        "autoRevise": True,
        "maxRevisions": 2,
        "minDraftLength": 80,
    }
    of_spec = read("[retrieval.critique]\n", tmp_path).settings
    assert [getattr(of_spec, name) for name in YAML_KEYS.values()] == [
        *(True, "moderate", True, True, True),  # enabled, defaultStrictness, what is checked
        *(False, 1, 50),  # autoRevise, maxRevisions, minDraftLength
    ]


@pytest.mark.spec("DRAFT-CRITIQUE-CONFIG")
def test_the_specs_options_are_read_at_top_level_and_as_flags(tmp_path: Path) -> None:
    found = read("autoRevise = true\nmaxRevisions = 3\n", tmp_path, flags={"checkFactual": "false"})
    assert (found.settings.draft_auto_revise, found.settings.draft_max_revisions) == (True, 3)
    assert found.settings.check_factual is False
    assert (
        load({"retrieval.critique.minDraftLength": "9"}, environment={}).settings.draft_min_length
        == 9
    )


@pytest.mark.spec("DRAFT-CRITIQUE-CONFIG")
def test_two_names_of_one_setting_must_agree(tmp_path: Path) -> None:
    text = "strictness = 'strict'\n[retrieval.critique]\ndefaultStrictness = '{}'\n"
    assert read(text.format("strict"), tmp_path).settings.strictness == "strict"
    [told] = load_errors(text.format("lenient"), tmp_path)
    assert (
        "masis.toml, strictness and masis.toml, retrieval.critique.defaultStrictness both" in told
    )
    assert "'strict' and 'lenient'" in told
    [told] = load_errors(
        environment={"MASIS_STRICTNESS": "strict", "MASIS_CLAIMS__STRICTNESS": "lenient"}
    )
    assert told.startswith("MASIS_STRICTNESS and MASIS_CLAIMS__STRICTNESS both set 'strictness'")
    whole = {
        "MASIS_PROVIDERS": '{"vllm": {"address": "http://a"}}',
        "MASIS_PROVIDERS__VLLM__ADDRESS": "http://b",
    }
    [told] = load_errors(environment=whole)
    assert told.startswith(
        "MASIS_PROVIDERS, vllm.address and MASIS_PROVIDERS__VLLM__ADDRESS both set"
    )
    [told] = load_errors(flags={"critic": "openai"}, models={"critic": "offline"})
    assert told.startswith("--model and --set critic both set 'critic'")


def test_a_stronger_source_may_override_another_name(tmp_path: Path) -> None:
    found = read(
        "strictness = 'strict'\n",
        tmp_path,
        environment={"MASIS_RETRIEVAL__CRITIQUE__DEFAULT_STRICTNESS": "lenient"},
    )
    assert found.settings.strictness == "lenient"
    assert found.origins["strictness"].place == "MASIS_RETRIEVAL__CRITIQUE__DEFAULT_STRICTNESS"


def test_values_of_a_table_may_come_from_different_sources(
    tmp_path: Path,
) -> None:
    text = "[providers.My-Server]\naddress = 'http://127.0.0.1:1/v1'\nconcurrency = 4\n"
    environment = {
        "MASIS_PROVIDERS__MY_SERVER__CONCURRENCY": "8",
        "MASIS_PROVIDERS__VLLM__ADDRESS": "http://127.0.0.1:2/v1",
        "MASIS_PRICES": '{"vllm:m": {"input": 1, "output": 2}}',
    }
    found = read(
        text, tmp_path, environment=environment, flags={"providers.My-Server.effort": "low"}
    )
    server, vllm = found.settings.providers["My-Server"], found.settings.providers["vllm"]
    assert (server.address, server.concurrency, server.effort) == (
        "http://127.0.0.1:1/v1",
        8,
        "low",
    )
    assert vllm.address == "http://127.0.0.1:2/v1"
    assert found.settings.prices["vllm:m"].output == 2
    assert found.origins["providers"].kind == "flag"
    assert {
        name: origin.kind for name, origin in found.origins.items() if name.startswith("providers.")
    } == {
        "providers.My-Server.address": "file",
        "providers.My-Server.concurrency": "environment",
        "providers.My-Server.effort": "flag",
        "providers.vllm.address": "environment",
    }
    assert found.origins['prices."vllm:m".output'].place == "MASIS_PRICES"


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        (
            "MASIS_MAX_ITERATION",
            "2",
            "there is no such variable. Did you mean 'MASIS_MAX_ITERATIONS'?",
        ),
        ("MASIS_STRICTNES", "strict", "Did you mean 'MASIS_STRICTNESS'?"),
        ("MASIS_CONFG", "x", "Did you mean 'MASIS_CONFIG'?"),
        (
            "MASIS_PROVIDERS_VLLM_ADDRESS",
            "x",
            "Use two underscores between names: MASIS_PROVIDERS__VLLM__ADDRESS.",
        ),
        ("MASIS_PROVIDERS__VLLM__ADDRES", "x", "Did you mean 'address'?"),
        ("MASIS_PROVIDERS__VLLM", "x", "is not a table"),
        ("MASIS_PROVIDERS__VLLM__KEY_ENV", KEY, "Don't put the key itself here."),
        ("MASIS_PROVIDERS", "{" + KEY, "this is not a table."),
        ("MASIS_PROVIDERS", "[" * 100_000, "this is not a table."),
        ("MASIS_MAX_ITERATIONS", "nine", "'nine' is not a whole number from 1 to 5."),
        ("MASIS_CHECK_FACTUAL", "perhaps", "'perhaps' is not true or false."),
    ],
)
def test_an_unknown_variable_suggests_the_nearest_one(variable: str, value: str, told: str) -> None:
    [line] = load_errors(environment={variable: value})
    assert line.startswith(f"{variable}: ")
    assert told in line
    assert "a1b2c3" not in line


def test_an_unknown_variable_only_warns() -> None:
    found = load(
        environment={
            "MASIS_HOME_PLANET": "Earth",
            "MASIS_OPENAI_API_KEY": KEY,
            "MASIS_DB": "/data/m.db",
        }
    )
    assert found.settings == Settings()
    first, second = found.warnings
    assert first.startswith("MASIS_HOME_PLANET: this variable isn't read.")
    assert "OPENAI_API_KEY" in second.removeprefix("MASIS_OPENAI_API_KEY")
    assert KEY not in second


def test_weights_must_sum_to_one(tmp_path: Path) -> None:
    [told] = load_errors("faithfulness_weight = 0.7\n", tmp_path)
    assert told.startswith(
        "masis.toml, faithfulness_weight: the weights of the overall score add up to 1.35,"
    )
    [told] = load_errors(
        environment={"MASIS_RELEVANCE_WEIGHT": "0.5"}, flags={"scores.reasoning_weight": "0"}
    )
    assert told.startswith("--set scores.reasoning_weight: ")
    even = "".join(f"{name} = 0.25\n" for name in WEIGHTS)
    assert read(even, tmp_path).settings.reasoning_weight == 0.25
    assert (
        load(
            {"reasoning_weight": "0.1", "relevance_weight": "0.3"}, environment={}
        ).settings.relevance_weight
        == 0.3
    )


def test_an_empty_variable_counts_as_unset(tmp_path: Path) -> None:
    found = read(
        "critic = 'openai'\n",
        tmp_path,
        environment={"MASIS_CRITIC": "", "MASIS_MAX_ITERATIONS": " "},
    )
    assert found.settings.critic == "openai"
    assert found.settings.max_iterations == 3


def test_every_setting_has_a_variable_and_a_flag() -> None:
    given = {
        name: str(value).lower() or "x" for name, value in Settings() if not isinstance(value, dict)
    }
    of_environment = load(
        environment={f"MASIS_{name.upper()}": text for name, text in given.items()}
    )
    of_flags = load(given, environment={})
    for name in given:
        assert of_environment.origins[name] == SettingOrigin("environment", f"MASIS_{name.upper()}")
        assert of_flags.origins[name] == SettingOrigin("flag", f"--set {name}")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (
            b"max_iterations == 2",
            r"isn't valid TOML: .* \(at line 1, column 17\)\. Put text in quotes",
        ),
        (b"\n\nstrictness = strict", r"isn't valid TOML: .* \(at line 3,"),
        (b"strictness = '\xff'", r"isn't UTF-8 text \(byte 15\)\."),
        (b"a = " + b"[" * 5_000, "isn't valid TOML, because its tables are nested"),
        (b"a = " + b"9" * 5_000, "isn't valid TOML"),
    ],
)
def test_an_invalid_toml_file_is_named_with_its_error(
    content: bytes, told: str, tmp_path: Path
) -> None:
    (tmp_path / "masis.toml").write_bytes(content)
    with pytest.raises(SettingsError, match=f"{tmp_path}/masis.toml: {told}"):
        load(file=tmp_path / "masis.toml", environment={})


def test_a_yaml_file_is_rejected_with_a_hint(tmp_path: Path) -> None:
    file = tmp_path / "ctx-sys.yaml"
    file.write_text("retrieval:\n  critique:\n    enabled: true\n", encoding="utf-8")
    with pytest.raises(
        SettingsError,
        match=r"This is a YAML file, but settings are TOML: .*\[retrieval\.critique\]",
    ):
        load(file=file, environment={})


def test_a_file_with_bom_and_crlf_is_read(tmp_path: Path) -> None:
    file = tmp_path / "masis.toml"
    file.write_bytes(b"\xef\xbb\xbfmax_iterations = 2\r\nstrictness = 'strict'\r\n")
    found = load(file=file, environment={})
    assert (found.settings.max_iterations, found.settings.strictness) == (2, "strict")


@pytest.mark.parametrize("file", ["/nowhere/masis.toml", "/"])
def test_an_unreadable_file_is_named(file: str) -> None:
    with pytest.raises(SettingsError, match=f"{file}: can't be read .*MASIS_CONFIG"):
        load(environment={"MASIS_CONFIG": file})


def test_the_file_is_searched_in_the_documented_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, own = tmp_path / "here", tmp_path / "configuration" / "masis" / "masis.toml"
    folder.mkdir()
    own.parent.mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.setattr(
        "masis.settings.environment.user_config_path", lambda *args, **more: own.parent
    )
    assert config_file({"MASIS_CONFIG": "/etc/masis.toml"}) == Path("/etc/masis.toml")
    assert config_file({}) is None
    own.write_text("max_iterations = 1\n", encoding="utf-8")
    assert load(environment={}).origins["max_iterations"].place == str(own)
    (folder / "masis.toml").write_text("strictness = 'strict'\n", encoding="utf-8")
    found = load(environment={})
    # they are not merged
    assert (found.settings.strictness, found.settings.max_iterations) == ("strict", 3)
    assert found.file == Path("masis.toml")


def test_the_database_is_chosen_by_flag_then_environment() -> None:
    environment = {"MASIS_DB": "/data/cases.db"}
    assert database_path("/other.db", environment) == Path("/other.db")
    assert database_path(None, environment) == Path("/data/cases.db")
    assert database_path(None, {}).name == "masis.db"


@pytest.mark.spec("CRITIC-LOOP-INPUT")
def test_the_defaults_match_the_specs() -> None:
    found = Settings()
    assert (found.invalid_citation_penalty, found.uncited_claim_penalty) == (0.5, 0.9)
    assert (found.max_iterations, found.improvement_threshold, found.loop_deadline_s) == (
        3,
        0.05,
        90,
    )
    weights = (
        found.faithfulness_weight,
        found.relevance_weight,
        found.completeness_weight,
        found.reasoning_weight,
    )
    assert weights == (0.35, 0.25, 0.25, 0.15)
    assert (found.hallucination_faithfulness_cap, found.uncited_faithfulness_cap) == (0.4, 0.5)
    assert (
        found.many_uncited_faithfulness_cap,
        found.uncited_cap_from,
        found.many_uncited_cap_from,
    ) == (0.3, 5, 10)
    assert found.strictness == "moderate"
