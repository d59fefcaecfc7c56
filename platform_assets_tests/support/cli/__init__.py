"""The command line, and what is published by hand for it to show."""
