"""A pytest plugin that fails a team's own tests if an answer isn't supported by its evidence.

    def test_the_bot(assert_grounded):
        answer = bot.answer("How long is the bridge?")
        assert_grounded(answer, documents, question="How long is the bridge?")

It's installed with the package, and pytest finds it by itself. It imports nothing else of the
package until a test uses one of its fixtures, so that the tests of other projects start as fast as
before.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from masis.pipeline import Bounds, Grounding
    from masis.schema.comparison import SystemComparison
    from masis.settings import Settings

MARK = (
    "grounded(min_support=None, allow_uncited=True, allow_unverifiable=False): what assert_grounded"
    " lets pass here"
)
BOUNDS = ("min_support", "allow_uncited", "allow_unverifiable")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the command-line options and the keys of the configuration file."""
    group = parser.getgroup("masis", "groundedness of answers (MASIS Workbench)")
    group.addoption(
        "--masis-model",
        metavar="MODEL",
        help="the model that checks claims against evidence; default: offline",
    )
    group.addoption(
        "--masis-report",
        metavar="FILE",
        help="write a line of JSON for each answer that was checked",
    )
    parser.addini(
        "masis_model",
        "the model that checks claims against evidence, such as openai:gpt-4o",
        default="",
    )
    parser.addini(
        "masis_min_support",
        "support (0 to 1) from which a partly supported claim passes",
        default="",
    )
    parser.addini(
        "masis_allow_uncited",
        "whether sentences without a citation pass",
        type="bool",
        default=True,
    )
    parser.addini(
        "masis_allow_unverifiable",
        "whether claims pass that couldn't be checked",
        type="bool",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker and start a new report, only once if several processes run the tests
    (pytest-xdist).
    """
    config.addinivalue_line("markers", MARK)
    report = config.getoption("--masis-report")
    if report and not hasattr(config, "workerinput"):
        try:
            Path(report).write_text("", encoding="utf-8")
        except OSError as error:
            raise pytest.UsageError(
                f"--masis-report {report}: can't be written ({error.strerror})"
            ) from error


@pytest.fixture(scope="session")
def masis_settings(pytestconfig: pytest.Config) -> Settings:
    """The settings for checking answers: masis.toml, the environment, and the model chosen for the
    tests.
    """
    from masis.api.roles import check_models
    from masis.errors import MasisError
    from masis.settings import OFFLINE, load

    model = pytestconfig.getoption("--masis-model") or pytestconfig.getini("masis_model")
    try:
        settings = load({"verifier": model} if model else None).settings
        check_models(
            settings.model_copy(
                update=dict.fromkeys(("drafter", "critic", "reviser", "evaluator"), OFFLINE)
            )
        )
    except MasisError as error:
        raise pytest.UsageError(f"masis: {error}") from error
    return settings


@pytest.fixture
def grounded(request: pytest.FixtureRequest, masis_settings: Settings) -> Callable[..., Grounding]:
    """Return a function that checks an answer against evidence and returns the result without
    failing the test.
    """
    from masis.pipeline import grounding

    usual = _marker_bounds(request)

    def check(
        answer: str, evidence: Any, *, question: str | None = None, **bounds: Any
    ) -> Grounding:
        chosen = _with_changes(usual, bounds)
        found = grounding(
            answer, evidence, question=question, bounds=chosen, settings=masis_settings
        )
        _append_report(request, found)
        return found

    return check


@pytest.fixture
def assert_grounded(grounded: Callable[..., Grounding]) -> Callable[..., Grounding]:
    """Return a function that fails the test if the answer isn't supported by the evidence."""
    from masis.pipeline import NotGrounded

    def check(
        answer: str, evidence: Any, *, question: str | None = None, **bounds: Any
    ) -> Grounding:
        __tracebackhide__ = True
        found = grounded(answer, evidence, question=question, **bounds)
        if not found.grounded:
            raise NotGrounded(found)
        return found

    return check


@pytest.fixture
def assert_not_worse() -> Callable[..., SystemComparison]:
    """Return a function that fails the test if the second system is worse than the first.

    It takes the arguments of ``masis.assert_not_worse``.
    """
    from masis.pipeline import assert_not_worse as check

    return check


def _marker_bounds(request: pytest.FixtureRequest) -> Bounds:
    """Return the bounds of the configuration file, overridden by the markers of the test. The
    closest marker wins.
    """
    from masis.pipeline import Bounds

    support = request.config.getini("masis_min_support")
    try:
        bounds: dict[str, Any] = {"min_support": float(support) if support else None}
    except ValueError:
        raise pytest.UsageError(
            f"masis_min_support = {support}: isn't a number from 0 to 1"
        ) from None
    bounds |= {name: bool(request.config.getini(f"masis_{name}")) for name in BOUNDS[1:]}
    for mark in reversed(list(request.node.iter_markers("grounded"))):
        if mark.args:
            raise pytest.UsageError(
                f"grounded({mark.args[0]!r}) needs the name of the bound, as in"
                " grounded(min_support=0.7)"
            )
        bounds |= mark.kwargs
    return _with_changes(Bounds(), bounds)


def _with_changes(bounds: Bounds, changes: dict[str, Any]) -> Bounds:
    from dataclasses import replace

    from masis.errors import InputError

    if unknown := sorted(set(changes) - set(BOUNDS)):
        raise pytest.UsageError(
            f"grounded: there is no bound {unknown[0]!r}. There are: {', '.join(BOUNDS)}."
        )
    try:
        return replace(bounds, **changes)
    except InputError as error:
        raise pytest.UsageError(f"grounded: {error}") from None


def _append_report(request: pytest.FixtureRequest, found: Grounding) -> None:
    report = request.config.getoption("--masis-report")
    if report:
        line = json.dumps({"test": request.node.nodeid, **found.record()}, ensure_ascii=False)
        with Path(report).open("a", encoding="utf-8") as file:
            file.write(line + "\n")


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print a summary and the path of the report, if one was requested."""
    report = config.getoption("--masis-report")
    if report and Path(report).is_file():
        lines = [
            line for line in Path(report).read_text(encoding="utf-8").splitlines() if line.strip()
        ]
        failed = sum(not json.loads(line)["grounded"] for line in lines)
        terminalreporter.write_line(
            f"masis: {len(lines)} answers checked, {failed} not grounded: {report}"
        )
