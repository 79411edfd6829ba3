#!/bin/sh
# Build or refresh a virtual environment and install the project into it.
#   sh tools/environment.sh VENV WHAT [PYTHON [CONSTRAINTS [PACKAGE ...]]]
# VENV is the folder, WHAT the argument for pip ("." or ".[test]"), PYTHON the interpreter to use instead of searching
# for one (can be empty), CONSTRAINTS the file of versions (constraints.txt), PACKAGE an additional package.
set -eu

venv=$1
what=$2
wanted=${3:-}
constraints=${4:-constraints.txt}
[ "$#" -gt 4 ] && shift 4 || shift "$#"

new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
    for candidate in ${wanted:-python3 python3.13 python3.12 python3.11 python3.14 python}; do
        if command -v "$candidate" >/dev/null 2>&1 && new_enough "$candidate"; then
            command -v "$candidate"
            return 0
        fi
    done
    return 1
}

# An environment whose interpreter is missing (a moved clone, an upgraded system) can't be repaired, only recreated.
if [ -d "$venv" ] && ! new_enough "$venv/bin/python"; then
    echo "The environment in $venv doesn't work any more and is created again."
    rm -rf "$venv"
fi

if [ ! -d "$venv" ]; then
    if ! python=$(find_python); then
        echo "MASIS Workbench needs Python 3.11 or newer, and none was found${wanted:+ as $wanted}." >&2
        echo "Install one (python.org, your package manager), or name it: make demo PYTHON=/path/to/python3.12" >&2
        exit 1
    fi
    echo "Creating an environment in $venv with $("$python" --version)."
    if ! "$python" -m venv "$venv"; then
        rm -rf "$venv"
        echo "$python can't create environments. On Debian and Ubuntu: apt-get install python3-venv" >&2
        exit 1
    fi
fi

# uv installs in seconds, pip in a minute. uv ignores pip's configuration (such as an index), so pip is the fallback.
with_uv() {
    command -v uv >/dev/null 2>&1 &&
        uv pip install --quiet --python "$venv/bin/python" --constraint "$constraints" --editable "$what" "$@"
}

with_pip() {
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --constraint "$constraints" --editable "$what" "$@"
}

echo "Installing $what with the versions of $constraints (the first time takes a minute or two)."
if ! with_uv "$@" && ! with_pip "$@"; then
    echo "The installation failed. See pip's output above, and run the same command again to continue." >&2
    exit 1
fi
