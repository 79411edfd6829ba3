"""One call to a model: retries, limits, schemas and parsing the reply."""
