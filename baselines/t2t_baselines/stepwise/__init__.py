"""Policies that play the step environment: their trajectory is their answer, and is ranked on the same board."""
