"""How the tables come into being and change; run by store/migrate.py."""
