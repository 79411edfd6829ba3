"""Third-party model servers, run with a model of a few hundred kilobytes: ``make test-servers``."""
