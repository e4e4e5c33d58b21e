"""Why a sub-job failed: the container that failed first, read from its pods in its cluster."""
