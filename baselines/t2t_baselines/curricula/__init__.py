"""Curricula to compare a designer with. All are designers; they read records, not text."""
