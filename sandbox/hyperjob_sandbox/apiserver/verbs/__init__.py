"""The handlers of the verbs, from dispatch to the store."""
