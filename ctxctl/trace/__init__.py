"""The trace file: native bytes to model and back (DESIGN section 2)."""
