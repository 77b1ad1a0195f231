"""Who plans: a lease in Redis or in the database, with terms from the store; and the lock for users' code."""
