"""The way from an informer event to a pass: event handlers, the workqueue's rate limit, workers.

`handlers` put the keys of the changed HyperJobs into the workqueue. `ratelimit` delays a HyperJob
whose passes take long. `workers` take keys from the workqueue, with one pass of a HyperJob at a
time.
"""
