"""The Model Context Protocol server (extra ``mcp``): an agent audits answers and reads what was
found.

    masis mcp                                    over stdin and stdout, for a client that starts it
    masis mcp --transport http --port 8765       over streamable HTTP, on loopback

Reading and auditing only: no tool decides, deletes or changes a setting; deciding is for people.
The tools, their arguments and their answers are plain functions and models (``tools``,
``arguments``, ``reports``); only ``server`` and ``transports`` know the SDK.
"""
