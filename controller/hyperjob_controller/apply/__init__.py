"""The API calls of the actions of a plan, those of different sub-jobs in parallel."""
