"""The queue engine while the controller runs: its rounds, its answers to one pass, its mode.

The decisions are in `controller.queueing`, which is pure; here are the caches that feed it, the
timer of the rounds, and the passes that a round wakes. It writes nothing to the API server.
"""
