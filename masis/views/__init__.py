"""How verdicts, states, scores, issues, numbers and log entries are worded and marked everywhere.

Pages, commands, reports and notebooks share these modules. They are pure: records go in; words,
tables and marked pieces come out. Nothing here depends on Streamlit, a store or a request.
"""
