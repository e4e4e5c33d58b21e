"""The plugins of a HyperJob: each sets up a framework, such as PyTorch, over all its sub-jobs.

A plugin changes the template of a sub-job, or adds an object beside it. Pure: its only input is the
world of the HyperJob (`world`).
"""
