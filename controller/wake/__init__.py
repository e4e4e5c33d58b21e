"""What makes a pass, and when: from an event of an informer to a key in the workqueue to a worker.

`handlers` name the HyperJobs that a change concerns; `ratelimit` makes a HyperJob whose passes are
dear rest between them; `workers` take keys from the queue, one pass of a HyperJob at a time.
Nothing here reads what a HyperJob says or decides anything about it.
"""
