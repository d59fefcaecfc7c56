"""What tests and benchmarks share: installations to try things in, and models to compare with.

Nothing here is a test. A test takes its helpers from here alone, never from another test.
"""
