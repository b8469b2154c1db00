"""Ranks on the page of the service: by scores on the same held-out rows of one table, and by nothing else."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import data_sets
import httpx
import pytest

from streamkernel import KernelRidge, open_table
from streamkernel.engine import Session
from streamkernel.fits import fit_ridge
from streamkernel.report.figures.side_by_side import MEASURES
from streamkernel.service import Settings
from streamkernel.service.schemas import ModelList
from streamkernel.settings import RidgeSettings

STATIC = Path(__file__).parents[2] / "streamkernel" / "service" / "static"
node = shutil.which("node")
with_node = pytest.mark.skipif(node is None, reason="no node to run the page's script with")


def model(name: str, score: float | None, rows: str = "a", measure: str = "rmse", **other: Any) -> dict[str, Any]:
    held = {"measure": measure, "score": score, "standard_error": 0.01, "rows": 9, "same_rows": rows}
    return {"name": name, "ready": True, "held_out": held, "relative_residual_trace": 0.5, **other}


def told(models: list[dict[str, Any]], tmp_path: Path) -> dict[str, Any]:
    """What the page's script makes of models."""
    assert node is not None
    script = tmp_path / "ask.mjs"
    asked = "{ order: ordered(models).map((each) => each.name), places: Object.fromEntries(places(models)), " + (
        "lead: lead(models), texts: models.map((each) => each.held_out && scoreText(each.held_out)) }"
    )
    code = (STATIC / "standings.js").read_text(encoding="utf-8")
    asking = f"const models = {json.dumps(models)}; console.log(JSON.stringify({asked}));"
    script.write_text(f"{code}\n{asking}\n", encoding="utf-8")
    run = subprocess.run([node, str(script)], capture_output=True, text=True, check=True, timeout=60)
    return dict(json.loads(run.stdout))


@with_node
def test_models_of_the_same_rows_are_ranked(tmp_path: Path) -> None:
    # The best has the largest residual trace, which says nothing here.
    models = [model("a", 2.0), model("b", 1.0, relative_residual_trace=0.9), model("c", 2.0), model("d", 0.1, rows="x")]
    found = told(models, tmp_path)
    assert found["order"] == ["b", "a", "c", "d"]
    assert found["places"] == {"b": [1, 3], "a": [2, 3], "c": [2, 3]}
    assert found["lead"] == (
        "4 models; of 3 with the same held-out rows, b is the best on held-out rows: RMSE 1 ± 0.01"
    )


@with_node
def test_every_measure_is_ranked_and_has_its_name(tmp_path: Path) -> None:
    for measure, name in MEASURES.items():
        found = told([model("a", 2.0, measure=measure), model("b", 1.0, measure=measure)], tmp_path)
        best = "a" if measure == "accuracy" else "b"
        assert found["places"][best] == [1, 2]
        assert f"{best} is the best on held-out rows: {name} " in found["lead"]


@with_node
def test_tables_are_not_ranked_against_each_other(tmp_path: Path) -> None:
    models = [model("a", 2.0), model("b", 1.0, rows="x"), model("c", 3.0), model("d", 0.5, rows="x")]
    found = told(models, tmp_path)
    assert found["order"] == ["a", "c", "d", "b"]
    assert found["lead"] == "4 models, ranked on the held-out rows of 2 tables"
    alone = told([model("a", 2.0), model("b", 1.0, rows="x")], tmp_path)
    assert (alone["places"], alone["lead"]) == ({}, "2 models")


@with_node
def test_more_accuracy_is_better_and_what_has_no_score_stays(tmp_path: Path) -> None:
    none = {"name": "none", "ready": True, "held_out": None}
    broken = {"name": "broken", "ready": False, "error": {}}
    models = [
        broken,
        none,
        *(model(f"m{share}", share, measure="accuracy") for share in (0.8, 0.9)),
        model("nan", None),
    ]
    found = told(models, tmp_path)
    assert found["order"] == ["none", "m0.9", "m0.8", "nan", "broken"]
    assert found["texts"][2:4] == ["80 % ± 1 %", "90 % ± 1 %"]
    assert found["texts"][4] == "–"
    assert told([], tmp_path)["lead"] == "0 models"
    assert told([model("one", 1.0)], tmp_path)["lead"] == "One model"


def test_the_service_tells_scores_and_whose_rows_they_are(live: Any, tmp_path: Path) -> None:
    rows = data_sets.friedman(500)
    table, folder = open_table(rows.X, rows.y), tmp_path / "held"
    folder.mkdir()
    for name, n, stop in (("few", 5, 300), ("many", 60, 300), ("other", 60, 400)):
        settings = RidgeSettings(n_components=n, metric="none", kernel="gaussian")
        fit_ridge(table.slice(0, stop), settings, Session(), whole=table).save(folder / name)
    KernelRidge(5).fit(rows.X, rows.y).save(folder / "whole")
    answer = httpx.get(f"{live(Settings(folder)).url}/v1/models", trust_env=False).json()
    ModelList.model_validate(answer)
    found = {each["name"]: each["held_out"] for each in answer["models"]}
    assert found["whole"] is None
    assert found["few"]["same_rows"] == found["many"]["same_rows"] != found["other"]["same_rows"]
    assert found["many"]["score"] < found["few"]["score"]
    assert found["many"]["measure"] == "rmse"
    assert 0.0 < found["many"]["standard_error"] < found["many"]["score"]
    assert found["few"]["rows"] == 200
