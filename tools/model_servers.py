"""Install model servers of others, each into an environment of its own: python
tools/model_servers.py FOLDER

For ``make test-servers``. One that can't be installed (llama-cpp-python is compiled where there is
no wheel: it takes cmake, a C++ compiler and a quarter of an hour) is named, and its tests are
skipped.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

SERVERS = {
    "llamacpp": ("xllamacpp==2026.10.11549", "gguf>=0.17", "numpy>=2"),
    "litellm": ("litellm[proxy]==1.106.2",),
    "llama-cpp-python": ("llama-cpp-python[server]==0.3.36",),
}
"""By name of the folder: the versions that docs/models.md speaks of."""
INSTALLED = ".installed"
"""Stands in an environment that is whole, and says of what."""


def main(folder: Path) -> None:
    """Install what is not there yet; say what can't be."""
    for name, packages in SERVERS.items():
        place, wanted = folder / name, "\n".join(packages)
        mark = place / INSTALLED
        if mark.exists() and mark.read_text(encoding="utf-8") == wanted:
            continue
        print(f"Installing {', '.join(packages)} into {place}.", flush=True)
        venv.create(place, with_pip=True, clear=True)
        command = [str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", *packages]
        if subprocess.run(command, check=False).returncode:
            print(f"{name} could not be installed; its tests are skipped.", flush=True)
        else:
            mark.write_text(wanted, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
