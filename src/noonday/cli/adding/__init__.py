"""The flags of `jobs add` and the body on the wire that they stand for."""
