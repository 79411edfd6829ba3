"""Lint the scripts of the package's components with oxlint, and check their format with oxfmt.

The rules are in ``.oxlintrc.json`` and ``.oxfmtrc.json``. oxfmt doesn't know ``@st-...`` in a
selector (``streamlit_internals.py``), so the two style sheets that begin with one are left out.

Scripts that export nothing are shared. A component is registered with their text before its own, so
their top-level names are globals in every other script, and a name that isn't used elsewhere is
dead. oxlint is installed from a wheel and doesn't need Node. If it isn't installed, a message is
printed and nothing is checked.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RULES = ROOT / ".oxlintrc.json"
TOP_LEVEL = re.compile(r"^(?:const|let|class|(?:async )?function)\s+(\w+)", re.MULTILINE)


def scripts() -> dict[Path, str]:
    """Return the text of every script of the package, by path."""
    return {
        path: path.read_text(encoding="utf-8") for path in sorted((ROOT / "masis").rglob("*.js"))
    }


def dead_names(texts: dict[Path, str], shared: dict[Path, list[str]]) -> list[str]:
    """Describe the names that a shared script defines and that no script uses, itself included."""
    return [
        f"{path.relative_to(ROOT)}: {name} isn't used by any script"
        for path, names in shared.items()
        for name in names
        if sum(len(re.findall(rf"\b{name}\b", text)) for text in texts.values()) < 2
    ]


def configuration(shared: dict[Path, list[str]]) -> dict[str, Any]:
    """Return the linter's configuration, with the names of the shared scripts as globals."""
    rules: dict[str, Any] = json.loads(RULES.read_text(encoding="utf-8"))
    defined = [name for names in shared.values() for name in names]
    # STREAMLIT: streamlit_internals.py; MARKER_END: masis/ui/components/__init__.py
    rules["globals"] = dict.fromkeys([*defined, "STREAMLIT", "MARKER_END"], "readonly")
    in_shared = {
        "no-unused-vars": ["error", {"varsIgnorePattern": f"^({'|'.join(defined)})$"}],
        "no-redeclare": "off",
    }
    rules["overrides"] = [{"files": [f"**/{path.name}" for path in shared], "rules": in_shared}]
    return rules


def main() -> int:
    """Lint the scripts and return 0 if there are no problems, else 1."""
    linter = shutil.which("oxlint", path=str(Path(sys.executable).parent)) or shutil.which("oxlint")
    if linter is None:
        print("JavaScript wasn't linted because oxlint isn't installed (pip install oxlint).")
        return 0
    texts = scripts()
    if not texts:
        return 0
    shared = {
        path: TOP_LEVEL.findall(text)
        for path, text in texts.items()
        if "export default" not in text
    }
    dead = dead_names(texts, shared)
    print("\n".join(dead), end="\n" if dead else "")
    with tempfile.TemporaryDirectory() as folder:
        rules = Path(folder) / "rules.json"
        rules.write_text(json.dumps(configuration(shared)), encoding="utf-8")
        code = subprocess.run(
            [linter, "-c", str(rules), *map(str, texts)], cwd=ROOT, check=False
        ).returncode
    formatter = shutil.which("oxfmt", path=str(Path(linter).parent))
    if formatter is None:
        print("JavaScript formatting wasn't checked: oxfmt isn't installed (pip install oxfmt).")
        return 1 if code or dead else 0
    unformatted = subprocess.run(
        [formatter, "--check", "masis/ui/components"], cwd=ROOT, check=False
    ).returncode
    return 1 if code or dead or unformatted else 0


if __name__ == "__main__":
    sys.exit(main())
