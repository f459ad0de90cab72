"""Pools of workers: where the jobs of a queue are done."""
