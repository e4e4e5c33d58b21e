"""The commands of the distribution: `hyperjob demo` and `hyperjob sandbox`.

`hyperjob.cli` finds them by name, and names the distribution where it is not installed.
"""
