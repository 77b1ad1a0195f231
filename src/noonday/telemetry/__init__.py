"""What becomes of events: log lines now, metrics and traces beside them."""
