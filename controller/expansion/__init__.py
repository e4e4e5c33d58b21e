"""From a HyperJob to the sub-jobs it wants, and the documents and changes that bring them about.

Pure: says what should be, never looks at a cluster's capacity, never writes.
"""
