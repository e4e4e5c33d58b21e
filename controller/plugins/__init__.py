"""Plugins of a HyperJob: what sets a framework up over all its sub-jobs.

Each changes a sub-job's template, or adds objects that go along with it. Pure: a plugin sees the
world it is given, reads no cluster and writes nothing.
"""
