"""The reader of the members: their nodes, pods and HyperNodes, by list and watch.

It runs only with `--members`, and it writes nothing. `hyperjob_engine.members` folds what it reads.
"""
