"""The reader of training progress from the logs of pods, through Karmada's cluster proxy.

It runs only with `--members logs`. It keeps the progress in memory, where the pass of a HyperJob
reads it, and writes nothing.
"""
