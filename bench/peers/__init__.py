"""Other schedulers and queues beside Noonday: the same no-op work on the same servers, one after the other.

Modules of `queues` and `clocks` run in an environment of their own, where the peers are installed.
"""
