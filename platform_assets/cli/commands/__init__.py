"""The commands: functions, and a `Typer` for each group, which the help shows by their names.

Put here arguments, and the report: parts for people, data for programs, whether it needs a look. What commands share is
in the package above. Everything else is called in `operations`, `engine` and `planning`.
"""
