"""What people ask for: API, CLI and UI share these verbs, each one transaction with its audit."""
