"""Reads answers: text -> tokens -> lines -> paths, and tables and JSON objects along the way. Call `frozen_lake.parser`."""
