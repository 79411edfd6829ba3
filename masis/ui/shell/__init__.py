"""Everything that all pages share: frame, address, keys, the served database, the reviewer and
forms.
"""
