"""The way in for programs: HTTP in problem+json, version 2 and the seeds' paths."""
