"""Which of the user's code a transform can reach, told from its source; nothing of it is run.

Here belongs whatever the code version of a table is made of: names and scopes, imports followed, what running a module
changes. Finding the source on disk is `engine.user_code`; what follows from another version is in `planning`.
"""
