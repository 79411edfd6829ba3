"""The providers of this package, each of which makes one try over the network.

``apis`` has a module for each API. ``base`` defines a provider, ``sdk_provider`` makes a try
through a vendor's SDK, and ``json_server`` makes one over plain HTTP.
"""
