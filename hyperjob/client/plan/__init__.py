"""Predict the fate of HyperJobs with admission's rules and the controller's own code.

`reading` reads the `snapshot` from a control plane, `rehearsal` runs the controller on it in
memory, and `judge` judges HyperJobs in it. The package writes no object to a control plane.
"""
