"""Our own queue admission over Volcano's Queues: who may start now, and why the others wait.

Pure. Knows queues, priorities, demands and free capacity; makes no call, asks no clock.
"""
