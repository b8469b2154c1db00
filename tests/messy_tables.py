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


def incomes(m: int, seed: int = 0) -> pd.DataFrame:
    """People as in the census table Adult: categories with "?", a skewed gain, two classes of income."""
    rng = np.random.default_rng(seed)
    education = rng.choice(["10th", "HS-grad", "Some-college", "Bachelors", "Masters", "Doctorate"], m, p=_EDUCATION)
    years = pd.Series(education).map(dict(zip(_LEVELS, (6, 9, 10, 13, 14, 16), strict=True))).to_numpy()
    occupation = rng.choice([f"occupation {i}" for i in range(14)], m)
    skill = np.array([int(each.split()[1]) for each in occupation]) * 7 % 14
    country = np.where(rng.random(m) < 0.88, "United-States", rng.choice([f"country {i}" for i in range(40)], m))
    married = rng.choice(["Married-civ-spouse", "Never-married", "Divorced", "Widowed"], m, p=[0.47, 0.33, 0.15, 0.05])
    age, hours = rng.integers(17, 90, m), np.clip(rng.normal(40, 12, m), 1, 99).round()
    gain = np.where(rng.random(m) < 0.08, np.exp(rng.normal(8.5, 1.2, m)).round(), 0.0)
    score = 0.35 * (years - 10) + 0.15 * (skill - 7) + 1.6 * (married == "Married-civ-spouse") + 0.03 * (hours - 40)
    score += -(((age - 50) / 20.0) ** 2) + 0.6 * np.log1p(gain) / 4 - 1.6
    frame = pd.DataFrame(
        {
            "age": age,
            "workclass": rng.choice(["Private", "Self-emp", "State-gov", "Local-gov"], m, p=[0.75, 0.11, 0.06, 0.08]),
            "education": education,
            "marital-status": married,
            "occupation": occupation,
            "sex": rng.choice(["Male", "Female"], m),
            "capital-gain": gain,
            "hours-per-week": hours,
            "native-country": country,
            "income": np.where(rng.random(m) < 1 / (1 + np.exp(-2 * score)), ">50K", "<=50K"),
        }
    )
    for name in ("workclass", "occupation", "native-country"):
        frame.loc[rng.random(m) < 0.05, name] = "?"
    return frame


_LEVELS = ["10th", "HS-grad", "Some-college", "Bachelors", "Masters", "Doctorate"]
_EDUCATION = [0.1, 0.35, 0.25, 0.18, 0.09, 0.03]


def bikes(m: int, seed: int = 0) -> pd.DataFrame:
    """Hourly rentals of bikes: a date with its hour, weather, gaps of sensors, a count."""
    rng = np.random.default_rng(seed)
    when = pd.Timestamp("2021-01-01") + pd.to_timedelta(np.sort(rng.choice(2 * 365 * 24, m, replace=False)), "h")
    hour, day, week = when.hour.to_numpy(), when.day_of_year.to_numpy(), when.day_of_week.to_numpy()
    weather = rng.choice(["clear", "mist", "rain"], m, p=[0.65, 0.25, 0.1])
    warm = (
        12 - 10 * np.cos(2 * np.pi * (day - 20) / 365) + 4 * np.sin(2 * np.pi * (hour - 9) / 24) + rng.normal(0, 3, m)
    )
    rush = np.exp(-((hour - 8) ** 2) / 3) + 1.3 * np.exp(-((hour - 17.5) ** 2) / 5)
    leisure = np.exp(-((hour - 14) ** 2) / 18)
    rate = np.where(week < 5, 350 * rush, 260 * leisure) + 40
    rate = rate * (0.4 + warm.clip(0) / 25) * np.select([weather == "rain", weather == "mist"], [0.4, 0.85], 1.0)
    rate *= 1 + 0.3 * np.arange(m) / m
    frame = pd.DataFrame(
        {
            "datetime": when.strftime("%Y-%m-%d %H:%M:%S"),
            "weather": weather,
            "temperature": warm.round(1),
            "humidity": rng.uniform(20, 100, m).round(),
            "windspeed": rng.gamma(2, 6, m).round(1),
            "count": rng.poisson(rate),
        }
    )
    for name in ("temperature", "humidity", "windspeed"):
        frame.loc[rng.random(m) < 0.05, name] = np.nan
    return frame


def houses(m: int, seed: int = 0) -> pd.DataFrame:
    """Sales of houses: an address, 300 suburbs, gaps in half of the years, a date of day/month/year, a price."""
    rng = np.random.default_rng(seed)
    suburb = rng.zipf(1.3, m) % 300
    level = np.random.default_rng(99).normal(0, 0.35, 300)
    kind = rng.choice(["house", "unit", "townhouse"], m, p=[0.6, 0.25, 0.15])
    rooms, area = rng.integers(1, 7, m), np.exp(rng.normal(6, 0.5, m)).round()
    sold = pd.Timestamp("2016-01-01") + pd.to_timedelta(rng.integers(0, 900, m), "D")
    built = rng.integers(1880, 2018, m).astype(float)
    price = 12.5 + level[suburb] + 0.15 * rooms + 0.25 * np.log(area / 400) - 0.4 * (kind == "unit")
    price += 0.1 * np.cos((built - 1880) / 30) + 0.2 * (sold - sold.min()).days / 900 + rng.normal(0, 0.15, m)
    frame = pd.DataFrame(
        {
            "Address": [f"{i % 199 + 1} Street {i}" for i in range(m)],
            "Suburb": [f"suburb {i}" for i in suburb],
            "Type": kind,
            "Rooms": rooms,
            "Landsize": area,
            "YearBuilt": built,
            "Date": sold.strftime("%d/%m/%Y"),
            "LogPrice": price.round(4),
        }
    )
    frame.loc[rng.random(m) < 0.3, "Landsize"] = np.nan
    frame.loc[rng.random(m) < 0.45, "YearBuilt"] = np.nan
    return frame
