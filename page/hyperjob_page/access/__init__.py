"""Authentication and authorization of the page's visitors."""
