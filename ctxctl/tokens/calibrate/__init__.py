"""How many tokens a model without a public tokenizer makes of what we count: fitted to what was billed.

Pure arithmetic over numbers; only `store` touches a file.  docs/calibration.md has the method, and what it
cannot know.
"""
