"""A testbed, a policy, a designer, a context module, a trainer and a preset for the t2t benchmark suite."""
