"""Pure transforms, one function per contract, named after its table.

A function gets the days it reads as declared in the contract and returns the contract's columns and `event_date`.
No clock, no randomness, no reading or writing here.
"""
