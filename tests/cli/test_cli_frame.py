"""Common behavior of the command line: fast help, one-line errors, and exit codes."""

from __future__ import annotations

import logging
import re
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from masis.cli import GROUPS, main
from masis.cli.commands import CommandGroup
from masis.cli.options import chosen_settings
from masis.cli.output import ErrorReport, LogLines, ProgressBar, printable, say
from masis.errors import InputError, SettingsError
from masis.schema.wording import count_noun
from masis.store.core import connections
from masis.version import APP
from tests.cli.running import Masis, case, lines

COMMANDS = {name: entry for entries in GROUPS.values() for name, entry in entries.items()}


def group_with(body: object) -> CommandGroup:
    """Return a group with one command, ``try``, that runs ``body``."""
    group = CommandGroup(callback=lambda debug: None)
    group.add_command(click.command("try")(body))  # type: ignore[arg-type]
    group.params.append(click.Option(["--debug"], is_flag=True))
    return group


def test_help_lists_every_command_and_version_names_the_application() -> None:
    shown = CliRunner().invoke(main, ["--help"])
    assert shown.exit_code == 0
    for name, entry in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(entry.summary)}$", shown.output, re.MULTILINE)
    assert CliRunner().invoke(main, ["--version"]).output == f"masis {APP}\n"


def test_the_help_of_a_group_describes_each_of_its_commands() -> None:
    context = click.Context(main)
    for name, entry in COMMANDS.items():
        group = main.get_command(context, name)
        if entry.is_group:
            assert isinstance(group, click.Group)
            assert all(command.short_help for command in group.commands.values()), name


def test_help_imports_no_heavy_packages() -> None:
    code = (
        "import sys\nfrom masis.cli import main\nmain(['--help'],"
        " standalone_mode=False)\nprint(sorted({'pydantic', 'streamlit', 'pandas', 'sqlite_utils',"
        " 'masis.services'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n")


def test_the_review_commands_import_no_tables() -> None:
    """pandas takes as long to import as half of a short command."""
    code = (
        "import sys, masis.cli.desk\nprint(sorted({'streamlit', 'pandas', 'sqlite_utils'}"
        " & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    ("error", "exit_code", "says"),
    [
        (
            InputError("is empty", hint="Fill it in.", file="a.jsonl", line=2),
            1,
            "a.jsonl, line 2: is empty. Fill it",
        ),
        (SettingsError("there is no setting 'x'."), 2, "there is no setting 'x'."),
        (
            PermissionError(13, "Permission denied", "/closed/a"),
            1,
            "/closed/a: Permission denied. Check the path",
        ),
        (KeyboardInterrupt(), 130, "Interrupted."),
        (ZeroDivisionError("why"), 1, "ZeroDivisionError: why. This is a bug. Run 'masis --debug"),
    ],
    ids=lambda given: type(given).__name__,
)
def test_an_error_is_one_line_with_its_exit_code(
    error: BaseException, exit_code: int, says: str
) -> None:
    def body() -> None:
        raise error

    result = CliRunner().invoke(group_with(body), ["try"])
    assert result.exit_code == exit_code
    assert says in result.stderr
    assert "Traceback" not in result.stderr
    if isinstance(error, ZeroDivisionError):
        assert CliRunner().invoke(group_with(body), ["--debug", "try"]).exception is error


def test_outside_text_doesnt_control_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert printable("a\x1b[31mb\x9b\u202ec\r") == r"a\x1b[31mb\x9b\u202ec\r"
    assert printable("Žluťoučký 東京\n\tkůň") == "Žluťoučký 東京\n\tkůň"
    say("\x1b]0;title\x07")
    assert capsys.readouterr().err == "\\x1b]0;title\\x07\n"


def test_many_errors_are_shown_up_to_a_limit_and_all_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    errors = ErrorReport()
    errors.add_all(f"error {number}" for number in range(1000))
    shown = capsys.readouterr().err.splitlines()
    assert errors.count == 1000
    assert len(shown) == 21
    assert shown[-1] == "More errors follow; they are counted, not shown."


def test_counts_are_formatted_with_their_nouns() -> None:
    assert [count_noun(1, "case"), count_noun(2000, "case"), count_noun(2, "entry", "entries")] == [
        "1 case",
        "2,000 cases",
        "2 entries",
    ]


@pytest.mark.spec("CRITIC-LOOP-MODELS")
def test_models_can_be_set_for_all_roles_or_one() -> None:
    settings = chosen_settings(["critic=a:b=c", "x:y"], ["max_iterations=2", "check_factual=false"])
    assert settings.models() == {
        "drafter": "x:y",
        "verifier": "x:y",
        "critic": "a:b=c",
        "reviser": "x:y",
        "evaluator": "x:y",
    }
    assert settings.max_iterations == 2
    assert settings.check_factual is False


@pytest.mark.parametrize(
    ("models", "assignments", "expected"),
    [
        (["critc=offline"], [], "there is no role 'critc'. Did you mean 'critic'?"),
        (["critic="], [], "the model is missing"),
        (["a", "b"], [], "two models for all roles"),
        ([], ["max_iterations"], "write it as KEY=VALUE"),
    ],
)
def test_an_invalid_model_or_setting_explains_the_correct_format(
    models: list[str], assignments: list[str], expected: str
) -> None:
    with pytest.raises(click.UsageError) as error:
        chosen_settings(models, assignments)
    assert expected in error.value.message


def test_an_unknown_or_out_of_range_setting_is_reported_with_the_typed_option() -> None:
    with pytest.raises(
        SettingsError, match=r"--set max_iteration: .* Did you mean 'max_iterations'\?"
    ):
        chosen_settings([], ["max_iteration=2"])
    with pytest.raises(
        SettingsError, match=r"--set max_iterations: '9' is not a whole number from 1 to 5\."
    ):
        chosen_settings([], ["max_iterations=9"])


def test_a_log_line_is_printed_above_the_progress_bar(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    record = logging.makeLogRecord({"msg": "try %d\x1b[2J", "args": (1,)})
    with ProgressBar("Auditing", 10) as bar:
        bar.move(5, "half")
        LogLines().emit(record)
    LogLines().emit(record)
    told = capsys.readouterr().err
    assert re.search(r"\r *\rtry 1\\x1b\[2J\n", told)
    assert told.endswith("\ntry 1\\x1b[2J\n")


@pytest.mark.parametrize("command", ["import", "audit"])
def test_a_command_on_a_read_only_database_names_the_file_and_a_hint(
    masis: Masis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    database = tmp_path / "kept.db"
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    first.write_bytes(lines(case("a")))
    second.write_bytes(lines(case("b")))
    assert masis("import", first, "--db", database).exit_code == 0
    connect = connections.connect

    def read_only(path: Path, **options: Any) -> sqlite3.Connection:
        connection = connect(path, **options)
        # fails with SQLITE_READONLY, as on a read-only disk
        connection.execute("PRAGMA query_only = ON")
        return connection

    monkeypatch.setattr(connections, "connect", read_only)
    result = masis(command, second, "--db", database)
    assert result.exit_code == 1
    assert "kept.db: can't be written" in result.stderr
    assert (
        "Make file and folder writable, or name another file with --db or MASIS_DB" in result.stderr
    )
    assert "fault of the program" not in result.stderr


def test_no_command_lets_file_content_control_the_terminal(masis: Masis, tmp_path: Path) -> None:
    hostile, database = "\x1b[2J\u202egone", tmp_path / "hostile.db"
    cases, abstracts = tmp_path / "cases.jsonl", tmp_path / "abstracts.jsonl"
    cases.write_bytes(
        lines(
            case(hostile, answer="The bridge is 120 metres long [1]."),
            case(hostile, query="Another?"),
        )
    )
    abstracts.write_bytes(lines({"id": hostile, "title": "\x1b[31mred", "text": "Text."}) + b"{")
    for command, shows in (
        (("import", cases), True),
        (("audit", cases), True),
        (("purge", "--dry-run", "--list", "--older-than", "0"), True),
        (("screen", abstracts, "-q", "red \x1b[2J text?", "--all"), False),
    ):
        shown = masis(*command, "--db", database)
        assert "\x1b" not in shown.stderr
        # output for programs is JSON
        assert "\x1b" not in shown.stdout or command[0] == "screen"
        assert ("\\x1b[2J\\u202egone" in shown.output) or not shows, shown.output
