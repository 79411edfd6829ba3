"""llama.cpp's own server from the ``xllamacpp`` wheel: python -m tests.servers.llamacpp_server
MODEL.

Options: ``--ctx`` corresponds to ``llama-server -c`` (shared by the slots) and ``--slots`` to
``-np``. Prints its URL.
"""

from __future__ import annotations

import argparse
import sys

import xllamacpp


def main() -> None:
    """Serve until standard input closes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--ctx", type=int, default=32768)
    parser.add_argument("--slots", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    params = xllamacpp.CommonParams()
    params.model.path = args.model
    params.n_ctx, params.n_parallel, params.port = args.ctx, args.slots, args.port
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = args.threads
    params.warmup = False
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdin.buffer.read()


if __name__ == "__main__":
    main()
