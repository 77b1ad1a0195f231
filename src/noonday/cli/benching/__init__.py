"""What `noonday bench` measures, and where; `make bench` of the repository takes its jobs from here too."""
