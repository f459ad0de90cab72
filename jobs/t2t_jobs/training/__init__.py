"""The outer loop, which trains an agent on what its jobs achieve."""
