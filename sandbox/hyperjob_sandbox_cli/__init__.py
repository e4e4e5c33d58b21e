"""The commands of the distribution: `hyperjob demo`, `hyperjob sandbox` and `hyperjob simulate`.

`hyperjob.cli` finds them by name, and names the distribution where it is not installed.
"""
