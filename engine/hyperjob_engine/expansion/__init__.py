"""The expansion of a HyperJob into sub-jobs, and their vcjobs and PropagationPolicies. Pure."""
