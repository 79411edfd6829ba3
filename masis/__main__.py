"""Entry point of ``python -m masis``, for when the ``masis`` script isn't on the path."""

from masis.cli import main

if __name__ == "__main__":
    main(prog_name="masis")
