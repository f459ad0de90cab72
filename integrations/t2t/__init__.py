"""The suite's name in frameworks that call a task by its package, such as `inspect eval t2t/mapf_frozenlake`."""
