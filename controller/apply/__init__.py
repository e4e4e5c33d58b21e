"""Carrying a plan out: the API calls of its actions, which decide nothing.

`applier` makes the calls of different sub-jobs in parallel and says what became of each; `exports`
makes and removes the ServiceExport of a sub-job.
"""
