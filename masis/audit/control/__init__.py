"""What drives the steps of a run: what it may spend, where it goes on, what it tells whoever
watches.
"""
