"""Find the user's code that a transform can reach, by reading its source without running it.

Put here what the code version of a table is made of: names and scopes, followed imports, whether importing a module
does anything. Finding the source on disk is `engine.user_code`; what a changed version means is in `planning`.
"""
