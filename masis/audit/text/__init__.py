"""How a text is read before anybody judges it: what asserts, quotes, instructions, its language."""
