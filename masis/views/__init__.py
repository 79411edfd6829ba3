"""Words, tables and marks for verdicts, states, scores, issues, numbers and log entries.

Pages, commands, reports and notebooks share these modules, so that the same thing has the same
words everywhere. The functions are pure and don't depend on Streamlit, a store or a request.
"""
