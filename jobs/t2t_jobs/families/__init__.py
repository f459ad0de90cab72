"""The task families that the suite brings; docs "Training jobs" has their table."""
