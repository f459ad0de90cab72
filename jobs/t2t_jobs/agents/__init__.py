"""Job agents: search, a rule, language models by their tool calls or in plain text, and a toy one that writes the job's text."""
