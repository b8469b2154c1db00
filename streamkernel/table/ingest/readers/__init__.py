"""Sources as batches of rows: one interface, a reader for each kind of file, frame or array, and the choice of it."""
