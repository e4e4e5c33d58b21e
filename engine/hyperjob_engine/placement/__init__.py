"""Placement of sub-jobs on clusters: free capacity, assignment, and the exact shortage.

Pure: equal inputs give equal outputs, without clock and I/O.
"""
