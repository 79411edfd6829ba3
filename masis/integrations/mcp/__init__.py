"""The Model Context Protocol server (extra ``mcp``), with which an agent audits answers and reads
the results.

    masis mcp                                    over stdin and stdout, for a client that starts it
    masis mcp --transport http --port 8765       over streamable HTTP, on loopback

The tools read and audit. They don't decide, delete or change settings, because decisions are left
to people. The tools, their arguments and their results are plain functions and models (``tools``,
``reports``); only ``server`` and ``transports`` use the SDK.
"""
