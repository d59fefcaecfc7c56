"""Find the user's code that a transform can reach, by reading its source without running it.

Put here whatever the code version of a table is made of: names and scopes, imports followed, whether importing a module
does anything. Finding the source on disk is `engine.user_code`; what follows from another version is in `planning`.
"""
