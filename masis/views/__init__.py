"""How verdicts, states, scores, issues, numbers and log entries are worded and marked, wherever
they are shown.

Pages, commands, reports and notebooks share it. Pure: records in, words, tables and marked pieces
out; nothing here knows Streamlit, a store or a request.
"""
