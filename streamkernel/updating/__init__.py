"""Updating: new rows folded into a fitted model, each row once."""
