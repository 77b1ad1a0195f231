"""Schedulers: how each peer is given schedules and fires them."""
