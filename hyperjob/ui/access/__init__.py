"""Who may look at the page, and how they prove it."""
