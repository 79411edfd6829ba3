"""The check of pinned versions passes only if each version was really checked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools import vulnerabilities

SAFE = {"name": "click", "version": "8.3.1", "vulns": []}
VULNERABLE = {
    "name": "jinja2",
    "version": "2.4.1",
    "vulns": [{"id": "PYSEC-2014-8", "fix_versions": ["2.7.2"], "description": "a temporary file"}],
}
UNKNOWN = {"name": "masis-private", "skip_reason": "Dependency not found on PyPI"}


@pytest.fixture
def pip_audit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module named pip_audit that prints the file next to it as its report."""
    package = tmp_path / "site" / "pip_audit"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(
        "import pathlib, sys\n"
        "report = pathlib.Path(__file__).with_name('report').read_text()\n"
        "print(report) if report else sys.exit('no route to the index')\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    return package / "report"


def report(*packages: object) -> str:
    return json.dumps({"dependencies": packages, "fixes": []})


@pytest.mark.parametrize(
    ("printed", "code", "said"),
    [
        (report(SAFE), 0, "pins.txt: 1 of 1 versions checked"),
        (report(SAFE, VULNERABLE), 1, "vulnerable: jinja2 2.4.1: PYSEC-2014-8, fixed in 2.7.2"),
        (report(SAFE, UNKNOWN), 2, "not in the list of advisories: masis-private"),
        (report(VULNERABLE, UNKNOWN), 1, "pins.txt: 1 of 2 versions checked"),
        ("", 2, "not checked. no route to the index"),
        ("{}", 2, "pip-audit's report can't be read"),
    ],
)
def test_a_version_that_is_vulnerable_or_was_not_checked_fails_the_check(
    pip_audit: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    printed: str,
    code: int,
    said: str,
) -> None:
    pip_audit.write_text(printed)
    pins = tmp_path / "pins.txt"
    pins.write_text("click==8.3.1\n")
    assert vulnerabilities.main([str(pins)]) == code
    assert said in capsys.readouterr().out


def test_a_vulnerable_file_is_reported_although_another_one_could_not_be_checked(
    pip_audit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(file: Path, *, advisories: str | None) -> vulnerabilities.Checked:
        if file.name == "first":
            return vulnerabilities.read_report(report(VULNERABLE))
        raise vulnerabilities.Unchecked("no network")

    monkeypatch.setattr(vulnerabilities, "check", check)
    assert vulnerabilities.main(["first", "second"]) == 1
