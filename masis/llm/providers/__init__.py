"""One try over the wire: ``base`` states what a provider is, ``faults`` what can go wrong, one file a vendor's SDK."""
