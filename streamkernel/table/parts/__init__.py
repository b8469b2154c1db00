"""Parts of the rows, for cross-validation: by content, group, time or class, and the weights that leave them out."""
