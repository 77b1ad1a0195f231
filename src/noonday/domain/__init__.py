"""Pure decisions: what is due, what may start, what follows. No clock, no I/O, no await."""
