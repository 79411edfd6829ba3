"""Plants certain faults in sound answers."""
