"""Every command: its help, a working example, its JSON output, and usage errors that suggest the
correct usage.
"""

from __future__ import annotations

import getpass
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import click
import pytest
from click.testing import CliRunner

from masis.cli import main
from masis.datasets.exports.export import Selection
from masis.schema.actor import Actor
from masis.schema.case import Case
from masis.schema.judge import HouseRule, JudgeContent
from masis.schema.judge_trials import DecidedFilter
from masis.services import Workbench, demo_case_files
from masis.services.batch_actions import BatchRequest
from masis.services.preferences import NewPreference
from masis.services.records import CaseFilter
from tests.cli.running import Masis, case, desk, lines
from tests.reviewing import decide
from tests.rooms import HAS_SCREENING, needs_both
from tools.cli_reference import reference

ME = Actor(name=getpass.getuser())
ROOT = Path(__file__).resolve().parents[2]

NO_DATABASE = (
    "bench",
    "completion",
    "config check",
    "config init",
    "models get",
    "models list",
    "person",
)
"""Commands that use no database."""

NO_JSON = {
    **dict.fromkeys(("demo", "serve", "ingest", "mcp"), "runs until it is stopped"),
    **dict.fromkeys(
        ("screen", "screening further"), "its result is JSON unless another format is named"
    ),
    **dict.fromkeys(
        ("completion", "config init", "person", "modes codebook export"),
        "its result is a file of another form",
    ),
}
NO_RECORDS = ("judge propose", "models list", "optimize", "modes agreement", "modes search")
"""Commands whose examples find nothing in the prepared database."""

ELSEWHERE = {
    "models get": "downloads a model",
    "mcp": "needs an extra",
    "audit s3": "needs a cluster",
}
"""Commands whose examples run in other tests."""

MODELS = re.compile(r"openai|anthropic|dspy|local:|s3://|audited/|[ ]pubmed ")
"""Parts of examples that need something this machine doesn't have."""

MORE = {"config init": " --force", "bench": " --bootstrap 10 --half all"}


class ListedCommand(NamedTuple):
    """A command with its full name."""

    name: str
    command: click.Command

    def example(self) -> str:
        """Return its first example that needs no model, without shell syntax and comments."""
        found = [
            line.strip()
            for line in (self.command.help or "").splitlines()
            if line.strip().startswith("masis ")
        ]
        own = [
            line
            for line in found
            if line.startswith(f"masis {self.name}") and not MODELS.search(line)
        ]
        return re.split(r" (?:\||&&|>>|>) |   +", own[0])[0] + MORE.get(self.name, "")


def every(group: click.Group = main, before: str = "") -> Iterator[ListedCommand]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from every(command, f"{before}{name} ")
        else:
            yield ListedCommand(f"{before}{name}", command)


EVERY = [pytest.param(command, id=command.name) for command in every()]
RIS = (
    "TY  - JOUR\nTI  - Metformin and mortality in heart failure\nAB  - A trial.\nDO  - 10.1/a\nER "
    " - \n"
)


class Prepared(NamedTuple):
    """A folder with a database and the files named in examples, and the values of the ids in
    them.
    """

    folder: Path
    ids: dict[str, str]


def screen_demo(workbench: Workbench, folder: Path) -> dict[str, str]:
    """Screen the demo's abstracts, write a file of labels, and return the screening's id."""
    from masis.screening.services import corpus_service, screening_service

    corpus = corpus_service(workbench).add_demo(ME)
    found = screening_service(workbench).screen(
        ME, "Does velotarine help?", [f"corpus:{corpus.name}"]
    )
    (folder / "rayyan.csv").write_text(f"id,title,decision\n{found.kept[0]},A title,Excluded\n")
    return {"0b7c2f...": found.id}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    folder = tmp_path_factory.mktemp("examples")
    mine = case(
        "bridge-01",
        answer="It is 120 metres long [1]. It was opened in 1931 [9].",
        metadata={"field": "Medicine"},
    )
    workbench = desk(
        folder / "review.db", mine, mine | {"id": "tower-02", "metadata": {"dataset": "pilot"}}
    )
    workbench.cases.add_one(ME, Case.model_validate(mine | {"id": "bridge-02"}))  # isn't decided
    for system in ("v1", "v2"):
        workbench.cases.add_one(ME, Case.model_validate(mine | {"system": system}))
    for name in ("bridge-01", "tower-02"):
        decide(workbench, name, reviewer=ME.name, iteration=1)
    for name, only in (("pilot-1", CaseFilter()), ("pilot-2", CaseFilter(datasets=("pilot",)))):
        workbench.datasets.freeze(ME, name, "claims", Selection(only))
    ids = screen_demo(workbench, folder) if HAS_SCREENING else {}
    entry = workbench.store.decisions.entries().rows[0].id
    token = workbench.tokens.create(ME, "nightly").token.id
    request = BatchRequest(action="tag", cases=("tower-02",), names=("old",))
    batch = workbench.batches.start(ME, request).id
    workbench.batches.run(ME, batch)
    workbench.modes.start_codebook(ME, "rag")
    workbench.modes.apply_to_cases(ME, ["rag.incomplete"], ["tower-02"])
    (folder / "codebook.json").write_text(workbench.modes.export_codebook(ME))
    rule = HouseRule(
        id="currency", sentence="A price has its currency", force="must", severity="high"
    )
    workbench.judge.draft(ME, "prices 1", JudgeContent(rules=(rule,)))
    workbench.judge.draft(ME, "dates 1", JudgeContent(rules=(rule,)))
    workbench.judge.adopt(ME, "dates 1")
    workbench.relabelling.draw(ME, "pilot-1", ["Ben"])
    workbench.queues.create(ME, "Legal", CaseFilter(fields=("Law",)))
    tall = mine | {"id": "tall-03", "query": "How tall is it?"}  # a second decided question
    workbench.cases.add_one(ME, Case.model_validate(tall))
    workbench.audits.audit(ME, workbench.store.cases.get("tall-03"))
    decide(workbench, "tall-03", "reject", reviewer=ME.name, iteration=1)
    workbench.alignment.choose(ME, DecidedFilter(), 1)
    workbench.alignment.hold_out(ME, workbench.judge.get(ME, "prices 1"))
    (folder / "backups").mkdir()
    workbench.backups.make(ME, folder / "backups" / "masis-20260301T020000Z.db")
    first = workbench.preferences.next(ME)
    assert first is not None
    workbench.preferences.decide(ME, NewPreference(pair=first.pair, verdict="equal"))
    second = workbench.preferences.next(ME)
    assert second is not None
    pair = second.pair
    workbench.close()
    (folder / "cases.jsonl").write_bytes(lines(case("a")))
    (folder / "answers.jsonl").write_bytes(lines(case("a")))
    (folder / "more-cases.jsonl").write_bytes(lines(case("b")))
    (folder / "export.ris").write_text(RIS)
    (folder / "pubmed.nbib").write_text("PMID- 1\nTI  - Steroids in asthma\nAB  - A trial.\n\n")
    (folder / "masis.toml").write_text("max_iterations = 2\n")
    (folder / "data" / "cases").mkdir(parents=True)
    first = demo_case_files()[0]
    some = b"".join(first.read_bytes().splitlines(keepends=True)[:4])
    (folder / "data" / "cases" / first.name).write_bytes(some)
    ids |= {"3f5a09...": entry, "5f0c1d2e3a4b": entry, "8c21d4": token}
    ids["b41c7d"] = batch
    ids["12-9f3c01"] = pair
    return Prepared(folder, ids)


@pytest.mark.parametrize("command", EVERY)
def test_every_command_has_help_with_an_example(masis: Masis, command: ListedCommand) -> None:
    shown = masis(*command.name.split(), "--help")
    assert shown.exit_code == 0, shown.output
    assert shown.output.startswith(f"Usage: masis {command.name} ")
    assert f"\n    masis {command.name}" in shown.output
    assert "xit code" in shown.output
    assert ("--db" in shown.output) != (command.name in NO_DATABASE)
    assert ("--json" in shown.output) != (command.name in NO_JSON)


@pytest.mark.slow
@pytest.mark.parametrize("as_json", [False, True], ids=["for people", "for programs"])
@pytest.mark.parametrize("command", [param for param in EVERY if param.id not in ELSEWHERE])
def test_the_first_example_of_every_command_runs(
    masis: Masis,
    prepared: Prepared,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: ListedCommand,
    as_json: bool,
) -> None:
    if as_json and command.name in NO_JSON:
        pytest.skip(NO_JSON[command.name])
    folder = tmp_path / "here"
    shutil.copytree(prepared.folder, folder)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("MASIS_DB", str(folder / "review.db"))
    monkeypatch.setattr("masis.ui.shell.serve.launch", lambda *_, **__: 0)
    monkeypatch.setattr(
        "masis.services.demo_database.demo_case_files", lambda: demo_case_files()[:1]
    )
    words = command.example()
    for placeholder, known in prepared.ids.items():
        words = words.replace(placeholder, known)
    arguments = shlex.split(words)[1:]
    yes = (
        ["--yes"] if any("--yes" in parameter.opts for parameter in command.command.params) else []
    )
    result = masis(*arguments, *yes, *(["--json"] if as_json and "--json" not in arguments else []))
    assert result.exit_code == 0, (words, result.stderr)
    if as_json:
        found = [json.loads(line) for line in result.stdout.splitlines()]
        assert all(isinstance(record, dict) for record in found)
        assert found or command.name in NO_RECORDS


@pytest.mark.parametrize(("typed", "offered"), [("masis aud", "audit"), ("masis db bac", "backup"),
                                                ("masis queue --ord", "--order")])  # fmt: skip
def test_a_shell_completes_commands_and_options(masis: Masis, typed: str, offered: str) -> None:
    for shell in ("bash", "zsh", "fish"):
        assert "_MASIS_COMPLETE" in masis("completion", shell).stdout
    words = {
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(typed.split()) - 1),
        "_MASIS_COMPLETE": "bash_complete",
    }
    found = CliRunner().invoke(main, [], prog_name="masis", env=words)
    assert f"plain,{offered}" in found.stdout.splitlines()


@needs_both
def test_the_command_line_docs_match_the_help_output() -> None:
    assert (ROOT / "docs" / "cli.md").read_text(encoding="utf-8") == reference(), (
        "run: python tools/cli_reference.py"
    )


WRONG: list[tuple[str, int, str]] = [
    ("audti", 2, "There is no command 'audti'. Did you mean 'audit'?"),
    ("backup", 2, "Use: masis db backup"),
    ("corpus", 2, "Use: masis screening corpus"),
    ("audit cases.jsonl --out cases.jsonl", 2, "--out is the same file as the input"),
    ("audit cases.jsonl --model openai:gpt-17", 2, "Set OPENAI_API_KEY"),
    ("audit cases.jsonl --set max_iterations=9", 2, "--set max_iterations"),
    ("audit cases.jsonl --concurrency 0", 2, "--concurrency"),
    ("audit cases.jsonl --out /no/such/folder/runs.jsonl", 2, "this folder doesn't exist"),
    ("audit cases.jsonl --address auto", 2, "--address is only allowed with --engine ray"),
    ("audit .", 2, ". is a folder. Name one JSON Lines file in it."),
    ("audit nothing.jsonl", 2, "nothing.jsonl: doesn't exist. Check the name and the folder."),
    ("import backups --dry-run", 1, "backups: has no file that can be read. Name files"),
    ("import nothing.jsonl", 2, "nothing.jsonl: doesn't exist. Check the name and the folder."),
    ("import cases.jsonl --as raags", 2, "Did you mean 'ragas'?"),
    ("import cases.jsonl --map anser=x", 2, "Did you mean answer=x?"),
    ("import cases.jsonl --map answer=a --map answer=b", 2, "--map answer is given twice."),
    ("metrics .", 2, "has no audited cases"),
    ("metrics --since yesterday", 2, "write a day as 2026-11-21"),
    ("metrics --since 2026-01-02 --until 2026-01-01", 2, "--until is before --since"),
    ("metrics --by year", 2, "'year' is not one of"),
    ("bench nothing.jsonl", 2, "nothing.jsonl: doesn't exist."),
    ("decide a", 2, "Name a case and a verdict"),
    ("decide a approve --file -", 2, "--file: leave out CASE and VERDICT."),
    ("decide a aprove", 2, "'aprove' is not one of"),
    ("decide a reject --label grey", 2, "write it as LABEL=WORDS"),
    ("undo nothing", 1, "nothing"),
    ("report", 2, "Name cases or use a filter"),
    ("report tower-02 --state any --out x", 2, "Name cases or use a filter"),
    ("report bridge-01 tower-02", 2, "Name it with --out"),
    ("report bridge-01 tower-02 --run 1 --out x", 2, "needs exactly one case"),
    ("report --field Nowhere --out x", 1, "No cases match"),
    ("report nowhere", 1, "nowhere"),
    ("report bridge-01 --run nowhere", 1, "nowhere"),
    ("export --format cases --state any", 2, "--state: the format cases has no filters"),
    ("export --format labels --shares 80/30/10", 2, "add up to 120"),
    ("export --format labels --quality 2-3", 2, "write a range as 0.2-0.8"),
    ("export --format hf", 2, "hf writes a folder"),
    (
        "dataset freeze ../v1 --format claims --state any",
        1,
        "isn't a valid name for a dataset version",
    ),
    ("dataset freeze v3 --format labels", 1, "no matching case gives a row"),
    ("dataset freeze v3 --format sft --state any --as csv", 1, "has nested rows"),
    ("dataset freeze v3", 2, "--format"),
    ("dataset show nowhere", 1, "there is no dataset version 'nowhere'"),
    ("dataset compare nowhere v1", 1, "there is no dataset version"),
    ("dataset export nowhere", 1, "there is no dataset version"),
    ("dataset remove nowhere --yes", 1, "there is no dataset version"),
    ("dataset remove pilot-1", 2, "pass --yes"),
    ("screen export.ris -q ' '", 2, "is empty"),
    ("screen export.ris -q Why? --grader nobody:knows", 2, "nobody"),
    ("screen export.ris -q Why? --set screening_keep_share=2", 2, "screening_keep_share"),
    ("screen export.ris", 2, "--question"),
    ("screen corpus:none -q Why? --db review.db", 1, "there is no corpus 'none'"),
    ("screen pubmed -q Why? --all --db review.db", 2, "doesn't work with PubMed"),
    ("screening corpus mine export.ris --remove", 2, "one at a time"),
    ("screening corpus mine nothing.ris", 2, "nothing.ris: doesn't exist"),
    ("serve --port 0", 2, "--port"),
    ("serve --address 0.0.0.0", 2, "--insecure"),
    ("serve --allow-host audits.example.org", 2, "--insecure"),
    ("serve --address 0.0.0.0 --insecure", 2, "--allow-host"),
    ("serve --allow-host https://audits.example.org/ --insecure", 2, "only a host name or address"),
    *(
        (f"person {name} --role lead", 2, "NAME")
        for name in ("''", "' Ada'", "'acceptance policy'", "a" * 81)
    ),
    ("db redact case nowhere --reason r --yes", 1, "'nowhere'"),
    ("db redact decision none --reason r --yes", 1, "'none'"),
    ("db redact case bridge-01 --reason r", 2, "pass --yes"),
    # A screening is all that there is to remove.
    *([("purge --older-than 0", 2, "pass --yes")] if HAS_SCREENING else []),
    ("trust --fit", 1, ""),
]


COMMANDS = set(main.list_commands(click.Context(main)))
OF_EXTENSIONS = {"screen", "screening", "optimize", "mcp"}


def is_here(words: str) -> bool:
    """Whether the command is here; some aren't without the folders that extend the core."""
    name = words.split()[0]
    return {"corpus": "screening"}.get(name, name) not in OF_EXTENSIONS - COMMANDS


@pytest.mark.parametrize(("words", "code", "says"), [row for row in WRONG if is_here(row[0])])
def test_a_usage_error_suggests_the_correct_usage_and_changes_nothing(
    masis: Masis,
    prepared: Prepared,
    monkeypatch: pytest.MonkeyPatch,
    words: str,
    code: int,
    says: str,
) -> None:
    monkeypatch.chdir(prepared.folder)
    monkeypatch.setenv("MASIS_DB", str(prepared.folder / "review.db"))
    monkeypatch.setattr(
        "masis.ui.shell.serve.launch", lambda *_, **__: pytest.fail("a server was started")
    )
    with closing(Workbench.open(prepared.folder / "review.db")) as workbench:
        before = workbench.store.decisions.verify()
    result = masis(*shlex.split(words))
    assert result.exit_code == code, result.output
    assert says in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr
    assert "This is a bug" not in result.stderr
    with closing(Workbench.open(prepared.folder / "review.db")) as workbench:
        assert workbench.store.decisions.verify() == before


@pytest.mark.parametrize(
    "words",
    [
        *("queue", "show a", "log", "metrics", "trust", "health", "export --format cases"),
        *("report a", "verify-log", "purge", "dataset list", "db backup copy.db", "db reassess"),
        *filter(is_here, ("screening corpus", "screening drift")),
    ],
)
def test_reading_creates_no_database(masis: Masis, tmp_path: Path, words: str) -> None:
    result = masis(*words.split(), "--db", tmp_path / "none.db")
    assert result.exit_code == 1
    assert (
        f"{tmp_path / 'none.db'}: the database doesn't exist. Create it with 'masis import FILE'"
        in result.output
    )
    assert not (tmp_path / "none.db").exists()


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "masis", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == CliRunner().invoke(main, ["--version"], prog_name="masis").output
