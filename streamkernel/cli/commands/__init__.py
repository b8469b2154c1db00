"""The commands, one per file: each parses its options, calls the library and prints the result."""
