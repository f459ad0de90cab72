"""Curricula that people would compare a designer with. All are designers; they look at records, not at text."""
