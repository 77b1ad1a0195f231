"""The web UI: pages made on the server, live by server-sent events, usable without a script."""
