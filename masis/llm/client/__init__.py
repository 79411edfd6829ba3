"""One call to a model: retry, limits, schemas, reading the reply."""
