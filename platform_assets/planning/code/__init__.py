"""Find the user's code that a transform can reach, by reading its source without running it.

Put here what makes the code version of a table: names and scopes, followed imports, effects of importing a module.
Finding the source on disk is `engine.user_code`; the meaning of a changed version is in `planning`.
"""
