"""Which cluster runs which sub-job: free capacity, assignment, and the exact shortage.

Pure: equal inputs give equal outputs; never reads a clock, never talks to anything.
"""
