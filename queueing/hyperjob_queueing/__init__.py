"""The queue engine: which HyperJobs may start now by Volcano's Queues, and why the others wait.

It decides over all HyperJobs at once, and no decision on one HyperJob imports it.
Pure: it computes with queues, priorities, demands and free capacity, without I/O and clock.
"""
