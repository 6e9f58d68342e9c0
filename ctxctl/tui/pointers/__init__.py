"""Answers whose lines lead to steps and items: why, blame and findings."""
