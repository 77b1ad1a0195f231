"""Queues: how each peer is emptied, filled with no-op tasks and worked off."""
