"""`noonday demo`: a fleet of jobs with a past, and the services that they call, to try everything out."""
