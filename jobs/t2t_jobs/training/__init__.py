"""The outer loop: an agent is trained by what its jobs achieve."""
