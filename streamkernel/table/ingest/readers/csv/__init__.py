"""CSV: its files, plain or compressed, how they write values, and the lines that the fast parser refuses."""
