"""The command line: ``masis COMMAND``.

Exit codes: 0 success, 1 a job that failed or only partly succeeded, 2 wrong use, 130 interrupted with Ctrl-C. Data go
to stdout or to ``--out``, messages to people go to stderr. A command's module is imported when the command
runs, so that ``masis --help`` answers at once.
"""

from __future__ import annotations

import click

from masis.cli.group import Command, CommandGroup
from masis.version import APP

GROUPS: dict[str, dict[str, Command]] = {
    "Start": {
        "demo": Command("masis.cli.serve:demo", "Open the workbench on cases written to show it."),
        "serve": Command("masis.cli.serve:serve", "Open the workbench on your own cases."),
        "config": Command("masis.cli.config:config", "Show settings and their sources; check or write the file."),
        "completion": Command("masis.cli.completion:completion", "Print what completes commands in your shell."),
    },
    "Audit": {
        "audit": Command("masis.cli.audit:audit", "Audit every case of a file, and store the runs."),
        "bench": Command("masis.cli.bench:bench", "Measure the auditor on labelled data, beside baselines."),
        "optimize": Command("masis.cli.optimize:optimize", "Compile a critic on labelled answers, with DSPy."),
        "models": Command("masis.cli.local_models:models", "Verifier models on this machine: download one, list them."),
    },
    "Review": {
        "queue": Command("masis.cli.desk:queue", "List the cases that wait for your decision."),
        "show": Command("masis.cli.desk:show", "Show a case: answer, evidence, audit, decisions."),
        "decide": Command("masis.cli.desk:decide", "Approve, override, reject or escalate; one case or a file."),
        "label": Command("masis.cli.desk:label", "Label words of an answer, or report an issue in it."),
        "undo": Command("masis.cli.desk:undo", "Undo a decision."),
        "log": Command("masis.cli.desk:decision_log", "List the newest entries of the decision log."),
        "report": Command("masis.cli.report:report", "Write the audits of cases as pages to print."),
        "metrics": Command("masis.cli.metrics:metrics", "Show the metrics of the audits: rates, times, scores, costs."),
        "trust": Command("masis.cli.trust:trust", "Show how far the audit may be relied on, by decisions."),
    },
    "Data": {
        "import": Command("masis.cli.import_data:import_files", "Read cases, or files of other tools."),
        "export": Command("masis.cli.export_data:export", "Write cases, runs, or data sets out of decisions."),
        "dataset": Command("masis.cli.dataset:dataset", "Freeze data sets under names, compare and rewrite them."),
    },
    "Screening": {
        "screen": Command("masis.cli.screening:screen", "Screen abstracts for a question: is the evidence sufficient?"),
        "screening": Command("masis.cli:screening_group", "Search further, store corpora, show drift, take labels."),
    },
    "Connect": {
        "ingest": Command("masis.cli.ingest:ingest", "Take cases from programs over HTTP."),
        "mcp": Command("masis.cli.mcp:mcp", "Serve the tools of the workbench to agents (MCP)."),
        "person": Command("masis.cli.person:person", "Print a person's entry for signing in, with a new secret."),
    },
    "Care": {
        "health": Command("masis.cli.health:health", "Check that everything the workbench needs is in order."),
        "verify-log": Command("masis.cli.decision_log:verify_log", "Check that no decision was changed or removed."),
        "purge": Command("masis.cli.purge:purge", "Remove audits past their time, and record that."),
        "db": Command("masis.cli:database_group", "Back up, restore, redact and reassess a database."),
    },
}
COMMANDS = {name: command for commands in GROUPS.values() for name, command in commands.items()}

_SCREENING = {
    "further": Command("masis.cli.screening:search_further", "Make further rounds for a finished screening."),
    "corpus": Command("masis.cli.corpus:corpus", "Store abstracts, to be searched and screened."),
    "labels": Command("masis.cli.drift:labels", "Take decisions from ASReview, Rayyan or Covidence as overrides."),
    "drift": Command("masis.cli.drift:drift", "Show whether people change grades more often than before."),
}
_DATABASE = {
    "backup": Command("masis.cli.backup:backup", "Copy the database while it is in use, and verify the copy."),
    "restore": Command("masis.cli.backup:restore", "Put a backup in the place of the database."),
    "redact": Command("masis.cli.redact:redact", "Remove the texts of a case or a decision, on request."),
    "reassess": Command("masis.cli.reassess:reassess", "Apply the current acceptance rule to stored audits."),
}


@click.group("screening", cls=CommandGroup, entries=_SCREENING)
def screening_group() -> None:
    """Go on from screenings, store what they search, and see what they learn: 'masis screen' makes one.

    \b
      masis screening corpus asthma export.ris pubmed.nbib
      masis screening further 0b7c2f... --rounds 3
      masis screening drift
    """  # noqa: D301 (click reads the backspace)


@click.group("db", cls=CommandGroup, entries=_DATABASE)
def database_group() -> None:
    """Look after a database: copies, redaction, the acceptance rule of stored audits.

    \b
      masis db backup backups/ --keep 7
      masis db redact case strategy-01 --reason "asked by the person"
    """  # noqa: D301 (click reads the backspace)


HELP = """Audit AI answers against their evidence: citations, claims, a critic, a reviser, a judge, and the person who
decides. Needs no key and no network unless you choose a model that does.

\b
  masis demo                                  look around with prepared cases
  masis audit cases.jsonl                     audit your own, and see what is wrong with them
  masis queue                                 what waits for a decision; masis serve shows it in the browser

Every command explains itself: masis COMMAND --help.
"""


@click.group(
    "masis",
    cls=CommandGroup,
    entries=COMMANDS,
    headings=GROUPS,
    inner={"screening": _SCREENING, "db": _DATABASE},
    help=HELP,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(APP, prog_name="masis", message="%(prog)s %(version)s")
@click.option("--debug", is_flag=True, help="Show the full traceback of an unexpected error.")
@click.pass_context
def main(context: click.Context, debug: bool) -> None:
    """``masis``; its help text is ``HELP``."""
    context.obj = {"debug": debug}


__all__ = ["COMMANDS", "main"]
