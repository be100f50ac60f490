"""Promises that a user may rely on, each with a command that measures it and fails when it is broken.

`python -m torture` runs them all and prints a table; `python -m torture crash` runs one row, `--quick` a small part.
Each row is a module of this package with `NAME`, `BAR` (the promise, as the table prints it) and
`run(quick: bool) -> Figure`.
"""
