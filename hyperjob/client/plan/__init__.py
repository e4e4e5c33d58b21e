"""What would become of HyperJobs: admission's rules and the controller's decision, asked ahead.

`reading` reads the world from a control plane, `judge` judges a HyperJob in it. Nothing is written.
"""
