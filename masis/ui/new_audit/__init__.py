"""The pages that start an audit and show it."""
