"""The command line: one command a file, each of which parses, calls and prints."""

from streamkernel.cli.main import main

__all__ = ["main"]
