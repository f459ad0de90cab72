"""A designer and a policy for the t2t benchmark suite."""
