"""The running part of the queue engine: its rounds, its verdict for a pass, its mode.

The decisions are in `hyperjob_queueing`, which is pure. The modules here feed it from the
caches, start the rounds, and put HyperJobs into the workqueue after a round. They do no API
request.
"""
