"""The queue engine: which HyperJobs may start now by Volcano's Queues, and why the others wait.

Pure: it computes with queues, priorities, demands and free capacity, without I/O and clock.
"""
