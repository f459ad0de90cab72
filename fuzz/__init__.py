"""Coverage-guided fuzzing of everything that reads untrusted text: see `python -m fuzz.run --help`."""
