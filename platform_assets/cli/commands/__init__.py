"""The commands, one module each, with the function or the `app` that the help shows.

Here belong arguments, what is printed, and the exit code; a `…_view` module says how the values of a larger command
look. What commands share is in the room around. Everything else is called in `operations`, `engine` and `planning`.
"""
