"""How cases arrive (files, HTTP, lakes, new versions), and what their senders are told about
them.
"""
