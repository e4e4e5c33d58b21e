"""Discovery and OpenAPI documents."""
