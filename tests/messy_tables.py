"""Tables as people have them, for the tests of schemas."""

from __future__ import annotations

import numpy as np
import pandas as pd


def messy(m: int = 600, seed: int = 0) -> pd.DataFrame:
    """Numbers, truth values, categories few and many, dates in text, gaps in all of them, an id, and a target."""
    rng = np.random.default_rng(seed)
    age = rng.integers(17, 90, m).astype(float)
    job = rng.choice(["private", "self", "state"], m)
    city = rng.choice([f"city {i}" for i in range(60)], m)
    married = rng.choice(["yes", "no"], m)
    when = pd.Timestamp("2019-03-01") + pd.to_timedelta(rng.integers(0, 900 * 24, m), "h")
    y = age / 30 + (job == "self") + np.char.str_len(city) / 3 + rng.standard_normal(m) / 10
    frame = pd.DataFrame(
        {
            "key": [f"k{i:05d}" for i in range(m)],
            "age": age,
            "job": job,
            "city": city,
            "married": married,
            "when": [each.isoformat() for each in when],
            "hours": rng.integers(1, 80, m).astype(str),
            "y": y,
        }
    )
    for column in ("age", "job", "city", "married", "when"):
        frame.loc[rng.random(m) < 0.08, column] = None
    frame.loc[rng.random(m) < 0.02, "hours"] = "?"
    return frame
