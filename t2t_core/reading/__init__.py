"""Reading what language models write: what was thought and what was said, and JSON as models write it."""
