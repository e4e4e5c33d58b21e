"""Read the logs of a HyperJob's pods from the members, through Karmada's cluster proxy."""
