"""Pools of workers, which run the jobs of a queue."""
