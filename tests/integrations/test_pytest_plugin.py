"""The pytest plugin: fixtures, marker, options, the report, and a startup that imports little."""

from __future__ import annotations

import json

import pytest

import masis.api.roles
import masis.pipeline  # noqa: F401  (pytester would import it again in every run)

pytestmark = pytest.mark.slow

pytest_plugins = ("pytester",)

TESTS = """
import pytest

CHUNKS = [
    {"id": "1", "text": "The bridge is 120 metres long."},
    {"id": "2", "text": "It was opened in 1931."},
]
RIGHT = "The bridge is 120 metres long [1]. It was opened in 1931 [2]."
WRONG = "The bridge is 180 metres long [1]. It was opened in 1931 [9]."
UNCITED = "The bridge is 120 metres long."

def test_right(assert_grounded):
    assert assert_grounded(RIGHT, CHUNKS, question="How long?").grounded

def test_wrong(assert_grounded):
    assert_grounded(WRONG, CHUNKS)

def test_counted(grounded):
    found = grounded(WRONG, CHUNKS)
    assert len(found.issues) == 2

def test_uncited(assert_grounded):
    assert_grounded(UNCITED, CHUNKS)

@pytest.mark.grounded(allow_uncited=False)
def test_marked(assert_grounded):
    assert_grounded(UNCITED, CHUNKS)

@pytest.mark.grounded(allow_uncited=False)
def test_called_with_more(assert_grounded):
    assert_grounded(UNCITED, CHUNKS, allow_uncited=True)
"""


def run(pytester: pytest.Pytester, *flags: str) -> pytest.RunResult:
    """Run pytest in this process without langsmith's plugin, which takes a second to import."""
    return pytester.runpytest_inprocess("-p", "no:langsmith_plugin", *flags)


def test_an_ungrounded_answer_fails_the_test_with_a_reason(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(TESTS)
    result = run(pytester, "--strict-markers")
    result.assert_outcomes(passed=4, failed=2)
    result.stdout.fnmatch_lines(
        [
            "*NotGrounded: The answer is not grounded in its evidence: 2 issues.",
            "*invalid reference  cites ?9?",
            "*sentence: It was opened in 1931 ?9?.",
            "*contradicted (support*cites ?1?",
            "*sentence: The bridge is 180 metres long ?1?.",
            "*evidence: ?1? The bridge is 120 metres long*",
        ]
    )
    result.stdout.no_fnmatch_line("*__tracebackhide__*")


def test_every_check_is_in_the_report(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(TESTS)
    report = pytester.path / "out.jsonl"
    report.write_text("from the last time\n", encoding="utf-8")
    result = run(pytester, "--masis-report", str(report))
    result.stdout.fnmatch_lines([f"masis: 6 answers checked, 3 not grounded: {report}"])
    lines = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]
    assert len(lines) == 6
    assert lines[0]["test"].endswith("::test_right")
    assert (lines[0]["grounded"], lines[0]["question"], lines[0]["judged_by"]) == (
        True,
        "How long?",
        "offline",
    )
    assert [issue["what"] for issue in lines[1]["issues"]] == ["invalid reference", "contradicted"]


def test_the_configuration_file_sets_the_thresholds(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(TESTS)
    pytester.makeini("[pytest]\nmasis_allow_uncited = false\nmasis_min_support = 0.5\n")
    run(pytester, "-k", "uncited or right or more").assert_outcomes(
        passed=2, failed=1, deselected=3
    )


@pytest.mark.parametrize(
    ("flags", "ini", "reason"),
    [
        (["--masis-model", "openia:x"], "", "openia"),
        (["--masis-model", "openai:gpt-4o"], "", "OPENAI_API_KEY"),
        ([], "masis_min_support = much", "masis_min_support = much: isn't a number"),
        ([], "masis_min_support = 60", "min_support: is 60.0. Give a share from 0 to 1"),
        (
            ["--masis-report", "none/out.jsonl"],
            "",
            "--masis-report none/out.jsonl: can't be written",
        ),
    ],
)
def test_configuration_errors_are_readable(
    pytester: pytest.Pytester, flags: list[str], ini: str, reason: str
) -> None:
    pytester.makepyfile(TESTS)
    pytester.makeini(f"[pytest]\n{ini}\n")
    result = run(pytester, "-k", "test_right", *flags)
    assert result.ret != 0
    assert reason in result.stdout.str() + result.stderr.str()


@pytest.mark.parametrize(
    ("bound", "message"),
    [
        ("0.9", "grounded(0.9) needs the name of the bound, as in grounded(min_support=0.7)"),
        ("min_suport=1", "there is no bound 'min_suport'. There are: min_support, allow_uncited"),
    ],
)
def test_an_invalid_threshold_is_named(pytester: pytest.Pytester, bound: str, message: str) -> None:
    test = "def test_it(assert_grounded):\n    assert_grounded('a', ['a'])\n"
    pytester.makepyfile(f"import pytest\n@pytest.mark.grounded({bound})\n{test}")
    assert message in run(pytester).stdout.str()


def test_starting_pytest_imports_only_the_plugin(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile("""
        import sys
        def test_light():
            ours = {name for name in sys.modules if name.startswith("masis")}
            plugin = {"masis.integrations", "masis.integrations.pytest_plugin"}
            light = {"masis", "masis.audit", "masis.version", "masis.schema", "masis.schema.display"}
            light |= {"masis.extensions", "masis.screening", "masis.screening.extension"}
            light |= {"masis.integrations.extension"}
            assert ours <= light | plugin
            assert not {"pydantic", "numpy", "openai", "streamlit", "pandas"} & set(sys.modules)
        """)
    others = ("no:hypothesispytest", "no:langsmith_plugin")  # plugins of other packages
    pytester.runpytest_subprocess(
        *(flag for name in others for flag in ("-p", name))
    ).assert_outcomes(passed=1)


def test_the_plugin_can_be_disabled(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_it(assert_grounded):\n    pass\n")
    result = run(pytester, "-p", "no:masis")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*fixture 'assert_grounded' not found"])
