"""The `tenfold` command: parse arguments, call another room, print the result.

Belongs here: one folder per command group, with `command.py` (options and help), `render.py`
(text) and, where needed, `json.py` and `page.py`; exit statuses and error output.
Does not belong here: anything that computes an answer (study), reads a format (files) or
formats a number, chart or reason (report).
"""
