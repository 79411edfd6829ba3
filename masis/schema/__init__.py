"""The records that travel through the product, frozen: case, audit, run, review."""
