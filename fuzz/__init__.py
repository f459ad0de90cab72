"""Coverage-guided fuzzing of everything that reads what strangers write: see `python -m fuzz.run --help`."""
