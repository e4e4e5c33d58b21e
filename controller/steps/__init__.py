"""The steps of the plan: each adds to the draft what it finds; none does anything itself."""
