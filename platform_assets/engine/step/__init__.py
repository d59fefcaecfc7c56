"""A step: days of one silver or gold table, computed, staged, checked, and published or kept in a stage.

Put here everything between reading a step's inputs and handing its days over to publication.
"""
