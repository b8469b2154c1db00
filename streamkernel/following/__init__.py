"""Following: a process that folds each completed append of a growing store into a saved model."""
