"""`tiny`: a toy language model that writes the text of a job itself; its warm-up used a noisy corpus of jobs."""
