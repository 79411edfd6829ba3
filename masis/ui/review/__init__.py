"""The pages about a case: review, comparison of audits and decision log."""
