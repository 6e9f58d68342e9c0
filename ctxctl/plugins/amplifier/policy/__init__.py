"""context-simple, the context manager of Microsoft's Amplifier: its messages, its ladder, its policies."""
