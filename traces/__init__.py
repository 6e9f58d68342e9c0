"""Example traces for the tutorial and the demo, and the scripts that write them."""
