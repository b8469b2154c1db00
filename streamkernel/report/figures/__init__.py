"""Figures as data, made from facts. The renderers draw them; no library that draws is imported here."""
