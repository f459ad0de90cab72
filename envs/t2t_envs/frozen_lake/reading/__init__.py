"""Reads answers: text -> tokens -> lines -> paths, with tables and JSON objects beside them. `frozen_lake.parser` is the door."""
