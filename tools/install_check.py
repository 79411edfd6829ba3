"""Install the wheel and the sdist into empty environments and test each, for docs/install.md.

    python tools/install_check.py [PYTHON ...] [--write]

For each interpreter (default: the one that runs this) and each file, creates a new environment
outside the checkout with the versions of constraints.txt, using uv if it is installed, otherwise
pip. Runs ``masis health``, audits demo cases with recorded replies, starts ``masis demo`` in an
empty home folder, and fetches one of its pages. Times ``import masis`` in new processes (the
fastest of seven, minus an interpreter that imports nothing). Sizes are in MB (10^6 bytes).
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools.serving import free_port, wait_for

PAGE = ROOT / "docs" / "install.md"
BEGIN, END = "<!-- installs: tools/install_check.py -->\n", "<!-- end of the installs -->"
HEAD = (
    "| installed from | Python | packages | `import masis` | first `masis demo` answers after |\n"
    + "|---" * 5
    + "|\n"
)
TIMES = 7


def run(*command: str | Path, cwd: Path, home: Path) -> str:
    """Run a command with an empty home folder, outside this checkout; return its output.

    If the command fails, exit with its output.
    """
    environment = {
        name: os.environ[name]
        for name in ("PATH", "LANG", "UV_CACHE_DIR", "PIP_INDEX_URL")
        if name in os.environ
    }
    process = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment | {"HOME": str(home)},
        capture_output=True,
        text=True,
    )
    if process.returncode:
        sys.exit(
            f"{' '.join(map(str, command))}\n{process.stdout[-2000:]}\n{process.stderr[-4000:]}"
        )
    return process.stdout


def seconds(python: Path, code: str, cwd: Path) -> float:
    """Return the shortest time in which a new process runs this code."""
    best = float("inf")
    for _ in range(TIMES):
        started = time.perf_counter()
        subprocess.run([python, "-c", code], cwd=cwd, check=True)
        best = min(best, time.perf_counter() - started)
    return best


def install(interpreter: str, file: Path, folder: Path) -> Path:
    """Install a file into a new environment and return the folder of its executables."""
    subprocess.run([interpreter, "-m", "venv", str(folder)], check=True)
    python = folder / "bin" / "python"
    by = ["uv", "pip", "install", "-q", "--python", str(python)]
    if shutil.which("uv") is None:
        by = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*by, "-c", str(ROOT / "constraints.txt"), str(file)], check=True, cwd=folder)
    return python.parent


def demo_seconds(masis: Path, home: Path) -> float:
    """Start the demo in an empty home folder and return the seconds until its first page loads."""
    port, started_at = free_port(), time.perf_counter()
    with (home / "demo.log").open("w", encoding="utf-8") as log:
        process = subprocess.Popen(
            [masis, "demo", "--no-browser", "--port", str(port)],
            cwd=home,
            env={"PATH": os.environ["PATH"], "HOME": str(home)},
            stdout=log,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            wait_for(f"http://127.0.0.1:{port}", process, home / "demo.log")
            took = time.perf_counter() - started_at
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10) as page:
                assert b"<title>" in page.read()
        finally:
            process.terminate()
            process.wait(timeout=20)
    return took


def test_install(interpreter: str, file: Path, folder: Path) -> str:
    """Test a file in a new environment of an interpreter, and return its row of the table."""
    home = folder / "home"
    home.mkdir(parents=True)
    programs = install(interpreter, file, folder / "environment")
    python, masis = programs / "python", programs / "masis"
    version = run(
        python, "-c", "import platform; print(platform.python_version())", cwd=home, home=home
    ).strip()
    package_file = run(
        python, "-c", "import masis; print(masis.__file__)", cwd=home, home=home
    ).strip()
    assert Path(package_file).is_relative_to(folder), package_file
    run(masis, "health", "--no-ask", cwd=home, home=home)
    cases = next(Path(package_file).parent.glob("_app/data/cases/strategy.jsonl"))
    run(
        masis,
        "audit",
        cases,
        "--replay",
        "demo",
        "--db",
        home / "audits.db",
        "--out",
        home / "runs.jsonl",
        cwd=home,
        home=home,
    )
    assert len((home / "runs.jsonl").read_text(encoding="utf-8").splitlines()) == 7
    packages = (
        len(list((programs.parent / "lib").glob("python*/site-packages/*.dist-info"))) - 2
    )  # without pip and setuptools
    imported = seconds(python, "import masis", home) - seconds(python, "", home)
    kind = "wheel" if file.suffix == ".whl" else "sdist"
    size = file.stat().st_size / 1e6
    return (
        f"| {kind}, {size:.1f} MB | {version} | {packages} | {imported:.2f} s |"
        f" {demo_seconds(masis, home):.0f} s |\n"
    )


def main() -> None:
    """Test every file with every interpreter."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pythons", nargs="*", default=[sys.executable])
    parser.add_argument("--write", action="store_true", help="write the table to docs/install.md")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        subprocess.run(
            [sys.executable, "-m", "hatchling", "build", "-d", str(folder / "dist")],
            cwd=ROOT,
            check=True,
        )
        # the wheel first
        files = sorted((folder / "dist").iterdir(), key=lambda file: file.suffix, reverse=True)
        for number, interpreter in enumerate(options.pythons):
            for file in files:
                rows.append(test_install(interpreter, file, folder / f"{number}{file.suffix}"))
                print(rows[-1], end="", flush=True)
                shutil.rmtree(folder / f"{number}{file.suffix}")  # half a GB each
    if options.write:
        text = PAGE.read_text(encoding="utf-8")
        before, _, rest = text.partition(BEGIN)
        PAGE.write_text(
            f"{before}{BEGIN}{HEAD}{''.join(rows)}{END}{rest.partition(END)[2]}", encoding="utf-8"
        )


if __name__ == "__main__":
    main()
