"""Kill at every step: commands that die at every fail point, and what is there once they were run again."""
