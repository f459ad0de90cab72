"""Preregistered studies of designers: a plan, its runs, and what they came to."""
