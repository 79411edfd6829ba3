"""Check the pinned versions against a list of known vulnerabilities; needs pip-audit.

python tools/vulnerabilities.py [--advisories URL] [FILE ...]

FILE is a list of ``name==version`` lines; without one, ``constraints.txt`` and those in
``constraints/`` are checked. ``make vulnerabilities`` installs pip-audit and calls this.

The advisories come from the package index, or with ``--advisories`` from a server with the API of
OSV (https://google.github.io/osv.dev/post-v1-query/), such as a mirror inside a company.

The exit code is 0 if every version was checked and none is vulnerable, 1 if one is vulnerable, and
2 if one couldn't be checked. pip-audit itself reports "No known vulnerabilities found" with exit
code 0 when the index answers 404 for all packages, so its summary isn't used.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
LIMIT_S = 15 * 60


class Unchecked(Exception):
    """The versions of a file couldn't be checked."""


class Checked(NamedTuple):
    """What pip-audit says about the versions of one file."""

    total: int
    vulnerable: list[str]
    unchecked: list[str]


def read_report(report: str) -> Checked:
    """Read pip-audit's JSON report.

    Raises:
        Unchecked: The text isn't such a report.

    """
    try:
        packages = json.loads(report)["dependencies"]
        unchecked = [package["name"] for package in packages if "skip_reason" in package]
        vulnerable = [
            f"{package['name']} {package['version']}: {found['id']}, fixed in "
            f"{', '.join(found['fix_versions']) or 'no version yet'}"
            for package in packages
            if "skip_reason" not in package
            for found in package["vulns"]
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise Unchecked(f"pip-audit's report can't be read: {error!r}") from error
    return Checked(len(packages), vulnerable, unchecked)


def check(file: Path, *, advisories: str | None) -> Checked:
    """Run pip-audit on a file.

    Raises:
        Unchecked: pip-audit isn't installed, failed, or took longer than 15 minutes.

    """
    service = ["--vulnerability-service", "osv", "--osv-url", advisories] if advisories else []
    command = [sys.executable, "-m", "pip_audit", "--requirement", str(file), "--no-deps"]
    command += ["--disable-pip", "--format", "json", "--progress-spinner", "off", *service]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unchecked(str(error)) from error
    # pip-audit exits with 1 if it found a vulnerability, and also after some errors
    if not done.stdout.strip():
        raise Unchecked(done.stderr.strip()[-500:] or f"pip-audit ended with {done.returncode}")
    return read_report(done.stdout)


def main(arguments: Sequence[str] | None = None) -> int:
    """Check each file, print the result, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--advisories", metavar="URL", help="a server with the API of OSV")
    options = parser.parse_args(arguments)
    pinned = [ROOT / "constraints.txt", *sorted((ROOT / "constraints").glob("*.txt"))]
    any_vulnerable = any_unchecked = False
    for file in options.files or pinned:
        try:
            checked = check(file, advisories=options.advisories)
        except Unchecked as error:
            print(f"{file.name}: not checked. {error}")
            any_unchecked = True
            continue
        count = checked.total - len(checked.unchecked)
        print(f"{file.name}: {count} of {checked.total} versions checked")
        for line in checked.vulnerable:
            print(f"  vulnerable: {line}")
        if checked.unchecked:
            print(f"  not in the list of advisories: {', '.join(checked.unchecked)}")
            print("  Check them with another list: --advisories URL.")
        any_vulnerable |= bool(checked.vulnerable)
        any_unchecked |= bool(checked.unchecked)
    return 1 if any_vulnerable else 2 if any_unchecked else 0


if __name__ == "__main__":
    sys.exit(main())
