"""Fit, save, load, predict: to the bit what the model in memory says, for every rule, estimator and poor table."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from poor_tables import FACTOR_RULES, KINDS, PoorTable, poor_tables, same_after_loading, same_factor_after_loading


@given(name=st.sampled_from(sorted(KINDS)), table=poor_tables(max_rows=60))
@settings(max_examples=20)
def test_some_of_all(name: str, table: PoorTable, tmp_path: Path) -> None:
    same_after_loading(KINDS[name], table, tmp_path / "model")


@given(rule=st.sampled_from(FACTOR_RULES), table=poor_tables(max_rows=60))
@settings(max_examples=4)
def test_some_factors(rule: str, table: PoorTable, tmp_path: Path) -> None:
    same_factor_after_loading(table, tmp_path / "factor", rule)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", KINDS)
@given(table=poor_tables())
@settings(max_examples=20)
def test_every_kind(name: str, table: PoorTable, tmp_path: Path) -> None:
    same_after_loading(KINDS[name], table, tmp_path / "model")


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("rule", FACTOR_RULES)
@given(table=poor_tables())
@settings(max_examples=20)
def test_factors_of_every_rule(rule: str, table: PoorTable, tmp_path: Path) -> None:
    same_factor_after_loading(table, tmp_path / "factor", rule)
