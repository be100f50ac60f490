"""Promises that a user may rely on, each with a command that measures it and fails when it is broken.

`python -m torture` runs them all and prints a table; `python -m torture crash` runs one row, `--quick` a small part.
"""
