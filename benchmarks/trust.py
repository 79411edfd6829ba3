"""Time the Trust page with many decisions, on the first load and when it is loaded again.

    python benchmarks/trust.py [--decisions 100000]

Writes the database directly, without the services: audits with their figures, each decided blind by
two of eight reviewers. Prints wall time and CPU time in seconds (on a busy machine, compare CPU
times). The targets are 2 s for the first load and 0.3 s after it. Slow imports, which take another
0.8 s, are done before the page is opened, as on a server that has run for a few seconds.
"""

from __future__ import annotations

import argparse
import logging
import random
import sqlite3
import sys
import tempfile
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent))

from streamlit.testing.v1 import AppTest

from masis.schema.case import Case
from masis.schema.review import Decision
from masis.services import Actor, Workbench, app_root
from masis.ui.shell import served_database
from masis.ui.shell.serve import import_slow_modules

ADA = Actor(name="Ada")
STATES = {
    "approve": "approved",
    "reject": "rejected",
    "override": "overridden",
    "escalate": "escalated",
}


def write_database(path: Path, decisions: int) -> None:
    """Write a database with ``decisions`` decisions, copied from one audited and decided case."""
    evidence = [{"id": "1", "text": "The bridge is 120 metres long."}]
    case = Case.model_validate(
        {"id": "c", "query": "How long?", "answer": "120 metres [1].", "evidence": evidence}
    )
    workbench = Workbench.open(path)
    workbench.cases.add(ADA, [case])
    run = workbench.audits.audit(ADA, case)
    decision = Decision(reviewer="Ada", case_id="c", run_id=run.id, iteration=1, verdict="escalate")
    workbench.store.decisions.append(decision)
    workbench.close()
    draws, connection = random.Random(1), sqlite3.connect(path)
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA foreign_keys = OFF")
    templates = {
        table: dict(connection.execute(f"SELECT * FROM {table} LIMIT 1").fetchone())
        for table in ("cases", "jobs", "decision_log", "decision_payloads", "case_payloads")
    }
    templates["cases"].pop("standing")  # a generated column
    rows: dict[str, list[dict[str, object]]] = {table: [] for table in (*templates, "case_work")}
    entry = connection.execute("SELECT max(seq) FROM decision_log").fetchone()[0]
    for number in range(2, decisions // 2 + 2):
        verdict = draws.choice(["approve"] * 7 + ["reject", "override", "escalate"])
        tier = draws.choice([None, "must_look", "not_certified"])
        field = draws.choice(["Law", "Medicine", "History"])
        digest_names = {
            "seq": number,
            "id": f"c{number}",
            "query_start": f"question {number // 3}",
            "field": field,
        }
        state = {"state": STATES[verdict], "run_seq": number, "decision_seq": entry + 2}
        rows["cases"].append({**templates["cases"], **digest_names, **state})
        rows["case_payloads"].append({**templates["case_payloads"], "case_seq": number})
        audited = {
            "case_seq": number,
            "tier": tier,
            "likely": draws.random(),
            "spot_check": draws.random() < 0.05,
        }
        rows["jobs"].append(
            {
                **templates["jobs"],
                **audited,
                "seq": number,
                "id": f"r{number}",
                "needs_review": bool(tier),
            }
        )
        for reviewer in (number % 8, (number + 1) % 8):
            entry += 1
            given_verdict = verdict if draws.random() < 0.9 else "approve"
            at = {
                "at": f"2026-{1 + entry % 12:02}-03T{entry % 24:02}:00:00.000Z",
                "verdict": given_verdict,
            }
            links = {
                "seq": entry,
                "id": f"e{entry}",
                "digest": f"d{entry}",
                "case_seq": number,
                "run_seq": number,
            }
            rows["decision_log"].append(
                {**templates["decision_log"], **at, **links, "kind": "decision", "token": None}
            )
            text = templates["decision_payloads"]["payload"].replace(
                '"escalate"', f'"{given_verdict}"'
            )
            rows["decision_payloads"].append(
                {"entry_seq": entry, "reviewer": f"R{reviewer}", "payload": text}
            )
            rows["case_work"].append(
                {"case_seq": number, "kind": "decided", "who": f"R{reviewer}", "entry_seq": entry}
            )
    for table, added in rows.items():
        names = list(added[0])
        sql = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
        connection.executemany(sql, (list(row.values()) for row in added))
    connection.commit()
    connection.close()


def main() -> None:
    """Write the database and load the page a few times."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--decisions", type=int, default=100_000)
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trust.db"
        write_database(path, options.decisions)
        served_database._served[:] = [path]
        app = AppTest.from_file(str(app_root() / "app.py"), default_timeout=300)
        app.run()
        import_slow_modules()
        app.switch_page("pages/trust.py")
        for name in ("first", "again", "again"):
            clock, cpu = time.perf_counter(), time.process_time()
            app.run()
            times = (
                f"{time.perf_counter() - clock:5.2f} s wall time,"
                f" {time.process_time() - cpu:5.2f} s CPU"
            )
            print(
                f"{name:>6}: {times}; {options.decisions:,} decisions, {len(app.metric)} figures",
                flush=True,
            )


if __name__ == "__main__":
    main()
