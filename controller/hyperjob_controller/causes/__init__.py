"""The cause of a failed sub-job: its first failed container, by its pods in the member cluster."""
