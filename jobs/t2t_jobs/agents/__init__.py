"""Job agents: search, a rule, language models (by tool calls or in plain text), and a toy model that writes the job's text."""
