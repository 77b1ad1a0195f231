"""The road of version 2: Redis Streams and Pub/Sub. It carries ids; losing it loses nothing."""
