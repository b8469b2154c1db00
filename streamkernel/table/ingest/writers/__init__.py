"""Batches of rows into a store: whole chunks with checksums and digests, in order or shuffled, or after other rows."""
