"""The wheel contains everything an installed workbench needs: pages, demo cases and Streamlit's
settings.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.rooms import needs_screening

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout, built offline with the installed hatchling."""
    if importlib.util.find_spec("hatchling") is None:
        pytest.skip("hatchling is not installed (pip install -e '.[test]')")
    folder = tmp_path_factory.mktemp("wheel")
    built = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    (found,) = folder.glob("*.whl")
    return found


def test_the_wheel_contains_pages_settings_and_demo_cases(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    wanted = {"masis/_app/app.py", "masis/_app/.streamlit/config.toml", "masis/py.typed"}
    wanted |= {f"masis/_app/pages/{page.name}" for page in (ROOT / "pages").glob("*.py")}
    wanted |= {
        f"masis/_app/data/cases/{file.name}" for file in (ROOT / "data" / "cases").glob("*.jsonl")
    }
    screening = (file for file in (ROOT / "data" / "screening").rglob("*") if file.is_file())
    wanted |= {f"masis/_app/{file.relative_to(ROOT).as_posix()}" for file in screening}
    wanted |= {
        file.relative_to(ROOT).as_posix()
        for file in (ROOT / "masis").rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    assert not wanted - names


def test_the_wheel_contains_no_tests(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert not [name for name in names if not name.startswith(("masis/", "masis_workbench-"))]


def test_an_installed_workbench_finds_its_pages_from_any_folder(
    wheel: Path, tmp_path: Path
) -> None:
    installed = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(installed)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import masis; assert masis.__file__.startswith(sys.argv[1]), masis.__file__\n"
        "from masis.services import app_root, demo_case_files\n"
        "from masis.ui.shell.serve import streamlit_settings\n"
        "root = app_root()\n"
        "assert str(root).startswith(sys.argv[1]), root\n"
        "assert (root / 'app.py').is_file() and (root / 'pages').is_dir()\n"
        "assert len(demo_case_files()) >= 6\n"
        "assert streamlit_settings(root)['server.address'] == '127.0.0.1'\n"
    )
    ran = subprocess.run(
        [sys.executable, "-I", "-c", script, str(installed)],
        cwd=elsewhere,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr


@needs_screening
def test_the_evidence_critic_runs_standalone_from_the_wheel(wheel: Path, tmp_path: Path) -> None:
    installed = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(installed)
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from masis.screening import demo\n"
        "assert demo.__file__.startswith(sys.argv[1]), demo.__file__\n"
        "sys.exit(demo.main())\n"
    )
    ran = subprocess.run(
        [sys.executable, "-I", "-c", script, str(installed)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "As expected" in ran.stdout
