"""Explain why a HyperJob is not running: its status, the commands to type next, what members show.

The module decides nothing of its own: the controller has written into the status why a HyperJob
waits and whether it can ever run.
"""
