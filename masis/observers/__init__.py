"""What may watch an audit from outside: observations with their events, and the context that log
records carry.
"""
