"""What the fits of all kinds share: the choice of a basis, plans, runs, records, checks, held-out rows."""
