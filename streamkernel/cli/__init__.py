"""The command line: one command per file; each parses its options, calls the library and prints the result."""

from streamkernel.cli.main import main

__all__ = ["main"]
