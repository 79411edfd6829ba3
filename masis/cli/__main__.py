"""``python -m masis.cli``, where the script ``masis`` isn't on the path."""

from masis.cli import main

if __name__ == "__main__":
    main(prog_name="masis")
