"""The real pip-audit is asked, with a server on loopback that answers as OSV does."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.loopback import Quiet, loopback
from tests.tools_lane.test_tools import PYTHON, ROOT

ADVISORY = {
    "id": "PYSEC-2014-8",
    "summary": "A temporary file with a known name",
    "affected": [
        {
            "package": {"name": "jinja2", "ecosystem": "PyPI"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "2.7.2"}]}],
        }
    ],
}


class Advisories(Quiet):
    """Knows a vulnerability of old versions of one package."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        old = asked["package"]["name"] == "jinja2" and asked["version"] == "2.4.1"
        body = json.dumps({"vulns": [ADVISORY]} if old else {}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def test_a_mirror_of_the_advisories_is_asked_for_each_pinned_version(tmp_path: Path) -> None:
    pins = tmp_path / "pins.txt"
    pins.write_text("click==8.3.1\njinja2==2.4.1\n")
    with loopback(Advisories) as address:
        done = subprocess.run(
            [
                PYTHON,
                str(ROOT / "tools" / "vulnerabilities.py"),
                "--advisories",
                address,
                str(pins),
            ],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "2 of 2 versions checked" in done.stdout
    assert "vulnerable: jinja2 2.4.1: PYSEC-2014-8, fixed in 2.7.2" in done.stdout
