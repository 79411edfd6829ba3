"""How cases arrive (files, HTTP, data lakes, new versions), and what their senders learn about
them.
"""
