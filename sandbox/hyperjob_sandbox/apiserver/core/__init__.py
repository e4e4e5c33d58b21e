"""What every handler works with: the store, the served resources, who may do what."""
