"""Install third-party model servers, each into its own environment.

    python tools/model_servers.py FOLDER

``make test-servers`` runs this. If a server can't be installed, its name is printed and its tests
are skipped. llama-cpp-python is compiled where it has no wheel, which needs cmake and a C++
compiler and takes a quarter of an hour.
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
"""The packages of each server, by the name of its folder, in the versions that docs/models.md
describes.
"""
INSTALLED = ".installed"
"""A file in each complete environment that lists the packages it was made with."""


def main(folder: Path) -> None:
    """Install the servers that are missing or outdated, and name those that fail to install."""
    for name, packages in SERVERS.items():
        environment, requirements = folder / name, "\n".join(packages)
        stamp = environment / INSTALLED
        if stamp.exists() and stamp.read_text(encoding="utf-8") == requirements:
            continue
        print(f"Installing {', '.join(packages)} into {environment}.", flush=True)
        venv.create(environment, with_pip=True, clear=True)
        python = environment / "bin" / "python"
        command = [str(python), "-m", "pip", "install", "--quiet", *packages]
        if subprocess.run(command, check=False).returncode:
            print(f"{name} couldn't be installed. Its tests will be skipped.", flush=True)
        else:
            stamp.write_text(requirements, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
