"""The simulated controllers of Karmada and Volcano Global: ordinary clients of an API server."""
