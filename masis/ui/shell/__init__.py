"""What all pages share: frame, address, keys, wording, the served database, the
reviewer, drafts.
"""
