"""Policies that play the step environment: their trajectory is their answer, and stands on the same board."""
