"""One try over the wire: ``base`` says what a provider is, ``sdk_provider`` makes the try, one file
a vendor.
"""
