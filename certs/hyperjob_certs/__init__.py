"""The certificates of the webhook: issue, rotation, storage and serving."""
