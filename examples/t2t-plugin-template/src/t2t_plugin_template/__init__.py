"""A testbed, a policy, a designer, a context module, a trainer, a tracker, a job agent, a family, a pool and a preset for the t2t
benchmark suite."""
