"""The hooks of the core: what a table adds, and a core without the folders that use them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import masis
from masis import extensions as hooks
from masis.errors import SettingsError
from masis.extensions import AddedPage, Extension, Library, ModelList, extensions, load
from masis.schema.actor import Actor
from masis.schema.display import HtmlDisplay
from masis.services import SIGN_IN_REQUIRED, Workbench
from masis.services import jobs as jobs_module
from masis.services.maintenance.health import HealthItem
from masis.services.model_names import assert_listed
from masis.settings import Settings
from masis.ui.shell.served_database import hidden_pages
from tests.reviewing import ADA
from tests.rooms import needs_integrations, needs_screening

ROOT = Path(__file__).resolve().parents[1]
HERE = __name__


class Bird(HtmlDisplay):
    """A record that only the extension of this test can show."""

    one_line = "a bird"


class Singing:
    """A kind of job that stores nothing."""

    def __init__(self) -> None:
        self.sung: list[str] = []

    def run(self, workbench: Workbench, job: Any, cancelled: Any) -> None:
        self.sung.append(job.subject)


SINGING = Singing()


def bird_html(bird: Bird) -> str:
    return "<b>a bird</b>"


def add_birds(workbench: Workbench, actor: Actor) -> None:
    SINGING.sung.append(f"demo of {actor.name}")


def check_birds() -> HealthItem:
    return HealthItem("birds", True, "they sing")


def silent_birds(connection: Any) -> Iterator[str]:
    yield f"{connection.execute('SELECT count(*) FROM cases').fetchone()[0]} birds are silent"


def names_of_birds(settings: Settings) -> tuple[str, ...]:
    return tuple(settings.screening_graders.split(","))


BIRDS = Extension(
    pages=(AddedPage("birds", "Birds", "flutter", "birds.py", setting="screening_page"),),
    job_kinds={"singing": f"{HERE}:SINGING"},
    model_lists=(ModelList("screening_graders", "singer", f"{HERE}:names_of_birds"),),
    notebook_views={"Bird": f"{HERE}:bird_html"},
    demo_data=(f"{HERE}:add_birds",),
    health_checks=(f"{HERE}:check_birds",),
    database_checks=(f"{HERE}:silent_birds",),
    libraries=(Library("Birds", "", "no_such_library", "no_such_library"),),
)


@pytest.fixture
def birds(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An extension that uses every hook that is read when it's needed."""
    original = hooks.extensions
    for module in list(sys.modules.values()):
        if isinstance(module, ModuleType) and vars(module).get("extensions") is original:
            monkeypatch.setattr(module, "extensions", lambda: (BIRDS,))
    caches = (jobs_module.job_kinds.cache_clear, hidden_pages.clear)
    for clear in caches:
        clear()
    yield
    for clear in caches:
        clear()


@pytest.mark.usefixtures("birds")
def test_a_table_is_all_that_an_extension_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workbench = Workbench.open(tmp_path / "birds.db")
    assert masis.html(Bird()) == "<b>a bird</b>"
    assert workbench.store.check().problems == ("0 birds are silent",)
    items = {item.name: item for item in workbench.health().items}
    assert items["birds"].message == "they sing"
    assert items["Birds"].absent
    job = jobs_module.QueuedJob("singing", "1", "a song", Settings(), ADA)
    jobs_module.run_job(workbench, job, lambda: False)
    assert SINGING.sung[-1] == "a song"
    lead = Actor(name="Ada", roles=("lead",), authenticated=True)
    named = Settings(screening_graders="replay:f")
    with pytest.raises(SettingsError, match="singer: 'replay:f' isn't a model"):
        assert_listed(SIGN_IN_REQUIRED, lead, named, Settings())
    monkeypatch.setenv("MASIS_SCREENING_PAGE", "false")
    assert hidden_pages() == {"birds"}
    workbench.close()


def test_every_object_that_a_table_names_exists() -> None:
    for extension in extensions():
        named = [page.keys for page in extension.pages if page.keys]
        named += [command.target for command in extension.commands]
        named += [models.names for models in extension.model_lists]
        named += [f"{module}:{name}" for name, module in extension.public_names.items()]
        for hook in fields(extension):
            value = getattr(extension, hook.name)
            if isinstance(value, dict) and hook.name != "public_names":
                named += value.values()
            elif isinstance(value, tuple):
                named += [target for target in value if isinstance(target, str)]
        assert all(load(target) is not None for target in named)
        for page in extension.pages:
            assert (ROOT / "masis" / page.file).is_file()


WITHOUT = '''
import sys

GONE = "masis." + sys.argv[1]

class Gone:
    """Hides a folder from every import."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == GONE or name.startswith(GONE + "."):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Gone)
'''


def run_without(room: str, script: str, *arguments: str) -> str:
    """Run a script in a process that doesn't have a folder, and return its output."""
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", WITHOUT + script, room, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


ROOMS = [
    pytest.param("screening", marks=needs_screening),
    pytest.param("integrations", marks=needs_integrations),
]


@pytest.mark.slow
@pytest.mark.parametrize("room", ROOMS)
def test_every_module_of_the_core_imports_without_a_room(room: str) -> None:
    run_without(
        room,
        """
import importlib
from pathlib import Path
import masis
from masis import *

for file in sorted(Path("masis").rglob("*.py")):
    name = ".".join(file.with_suffix("").parts).removesuffix(".__init__")
    if not name.startswith(("masis.screening", "masis.integrations", "masis.__main__")):
        importlib.import_module(name)
assert not any(name.startswith(GONE) for name in sys.modules)
""",
    )


@pytest.mark.slow
@pytest.mark.parametrize("room", ROOMS)
def test_commands_and_audits_work_without_a_room(room: str, tmp_path: Path) -> None:
    shown = run_without(
        room,
        """
from click.testing import CliRunner
from masis.cli import main

def run(*arguments):
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    return result.output

folder = sys.argv[2]
print(run("--help"))
run("audit", "data/cases/law.jsonl", "--limit", "2", "--db", folder + "/desk.db")
run("queue", "--db", folder + "/desk.db")
run("verify-log", "--db", folder + "/desk.db")
run("purge", "--db", folder + "/desk.db", "--older-than", "0", "--dry-run")
run("config", "show")
run("models", "list")
print(run("health", "--db", folder + "/desk.db"))
""",
        str(tmp_path),
    )
    assert "evidence critic" not in shown or room != "screening"
    assert ("masis screen" not in shown and "\n  screen" not in shown) or room != "screening"


@pytest.mark.slow
@pytest.mark.apptest
@pytest.mark.parametrize("room", ROOMS)
def test_pages_open_without_a_room(room: str, tmp_path: Path) -> None:
    run_without(
        room,
        """
from pathlib import Path
from streamlit.testing.v1 import AppTest
from masis.services import Workbench
from masis.services.demo_database import demo_cases
from masis.schema.actor import Actor
from masis.ui.shell import served_database

database = Path(sys.argv[2]) / "desk.db"
workbench = Workbench.open(database)
workbench.cases.add(Actor(name="Ada"), list(demo_cases())[:2])
served_database.serve_database(database)
app = AppTest.from_file("app.py", default_timeout=60).run()
assert not app.exception, app.exception
for page in ("queue", "review", "new", "settings", "health", "retention"):
    app.switch_page(f"pages/{page}.py").run()
    assert not app.exception, (page, app.exception)
""",
        str(tmp_path),
    )
