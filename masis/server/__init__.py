"""The HTTP servers of the product: the JSON API on the workbench's port, and ingestion."""
