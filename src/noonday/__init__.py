"""Noonday: a job scheduler that fires on time, loses nothing and says why."""
