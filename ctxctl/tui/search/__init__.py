"""The search over the whole trace: its state, its lines, and what it asks for."""
