"""Policies: what a runtime's own rules would have put into the window."""
