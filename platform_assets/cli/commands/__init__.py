"""The commands, one module each, with the function or the `app` that the help shows.

Put here arguments, and the report of what was found: parts for people, data for programs, whether it needs a look.
What commands share is in the room around. Everything else is called in `operations`, `engine` and `planning`.
"""
