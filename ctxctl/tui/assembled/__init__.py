"""The assembled text of a frame, block by block: values, how they are gathered, rows, and lines."""
