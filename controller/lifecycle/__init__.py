"""The life of a HyperJob: when it ends, what is made again, what waits, what is taken back.

Pure: says what should become of the sub-jobs, never how; never reads a clock or a cluster.
"""
