"""One file per group of addresses; each asks `control` and puts the answer on the wire."""
