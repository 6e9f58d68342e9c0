"""Fuzzing: captures and traces damaged in their own structure, through whole commands and through parsers."""
