"""What captures of HTTP calls to models share: bodies, which calls ask a model, and the way to steps."""
