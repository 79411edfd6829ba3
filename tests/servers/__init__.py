"""Model servers of others, run with a model of a few hundred kilobytes: ``make test-servers``."""
