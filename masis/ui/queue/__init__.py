"""The overview and the queue of cases."""
