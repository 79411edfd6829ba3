"""Run every test: the project's own, then those of each integration in an environment of its own.

python tools/every_test.py [--venv .venv] [--extra mcp ...] [--without-core] [-- PYTEST_FLAGS]

An integration's environment holds the project with that one extra, in the versions of ``constraints/EXTRA.txt``, and
pytest; it lies beside the main one (``.venv-extras/EXTRA``) and is made again when those versions or pyproject.toml
change. Everything runs, whatever fails; the exit code is 1 if anything did.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "tests" / "integrations"
INPUTS = (ROOT / "pyproject.toml", ROOT / "tools" / "environment.sh")
BESIDE = ("pytest", "hypothesis")
NOTHING_LEFT = 5
"""pytest's exit code where no test was chosen: with --last-failed, nothing had failed there."""


def extras() -> list[str]:
    """The extras that have tests of their own, by name."""
    return sorted(
        folder.name.removeprefix("with_") for folder in FOLDER.glob("with_*") if any(folder.glob("test_*.py"))
    )


def environment(extra: str, venv: Path, python: str) -> Path | None:
    """The interpreter of an extra's environment, made or refreshed where need be; None where that failed."""
    home = venv.with_name(f"{venv.name}-extras") / extra
    versions, stamp = ROOT / "constraints" / f"{extra}.txt", home / ".installed"
    if not stamp.exists() or any(path.stat().st_mtime > stamp.stat().st_mtime for path in (*INPUTS, versions)):
        home.parent.mkdir(parents=True, exist_ok=True)
        command = ["sh", "tools/environment.sh", str(home), f".[{extra}]", python, str(versions.relative_to(ROOT))]
        if subprocess.run([*command, *BESIDE], cwd=ROOT, check=False).returncode:
            return None
        stamp.touch()
    return home / "bin" / "python"


def passed(interpreter: Path, flags: list[str], *where: str) -> bool:
    """Whether the tests there pass: all that an environment without extras collects, or one folder."""
    code = subprocess.run([interpreter, "-m", "pytest", *where, *flags], cwd=ROOT, check=False).returncode
    return code == 0 or (code == NOTHING_LEFT and "--last-failed" in flags)


def main(arguments: list[str]) -> int:
    """Run what was asked for; 0 if all passed."""
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    own, flags = arguments[:cut], arguments[cut + 1 :]
    parser = argparse.ArgumentParser(description="Run every test.")
    parser.add_argument("--venv", type=Path, default=ROOT / ".venv")
    parser.add_argument("--python", default="", help="the interpreter to make environments with")
    parser.add_argument("--extra", action="append", choices=extras(), help="only this integration; may be repeated")
    parser.add_argument("--without-core", action="store_true", help="leave the project's own tests out")
    chosen = parser.parse_args(own)
    venv: Path = chosen.venv.absolute()
    failed = []
    if not chosen.without_core and not passed(Path(sys.executable), flags):
        failed.append("the project's own tests")
    for extra in chosen.extra or extras():
        began = time.monotonic()
        print(f"== {extra}", flush=True)
        interpreter = environment(extra, venv, chosen.python)
        if interpreter is None:
            failed.append(f"{extra} (its environment)")
        elif not passed(
            interpreter, ["-o", f"cache_dir=.pytest_cache/{extra}", *flags], f"tests/integrations/with_{extra}"
        ):
            failed.append(extra)
        print(f"   {extra}: {time.monotonic() - began:.0f} s", flush=True)
    if failed:
        print(f"Failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
