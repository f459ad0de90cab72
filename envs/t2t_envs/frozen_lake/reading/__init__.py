"""Reads answers: text -> tokens -> lines -> paths, with tables and JSON objects beside them. Call `frozen_lake.parser`."""
