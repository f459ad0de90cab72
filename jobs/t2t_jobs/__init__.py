"""Agents that write training jobs, and are trained on what the jobs achieve (after "AI trains AI"; docs: jobs)."""
