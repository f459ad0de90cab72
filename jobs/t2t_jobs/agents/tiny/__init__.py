"""`tiny`: a toy language model that writes the text of a job itself, warmed up on a noisy corpus of jobs."""
