"""Predict the fate of HyperJobs with admission's rules and the controller's decisions.

`reading` reads the world from a control plane, and `judge` judges a HyperJob in it. The package
writes no object.
"""
