"""The truth: jobs, executions, attempts, leases, audit and outbox, on SQLite or PostgreSQL."""
