"""The schema says what is so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import numpy as np
from jsonschema import Draft202012Validator

from streamkernel.kinds import KINDS, PREDICTORS
from streamkernel.service import JobsPlace, Settings, create_app
from streamkernel.service.formats import BODIES
from streamkernel.service.http_errors import STATUSES

PREDICT = "/v1/models/{name}/predict"


def validator(schema: dict[str, Any], name: str) -> Draft202012Validator:
    return Draft202012Validator({"$ref": f"#/components/schemas/{name}", "components": schema["components"]})


def test_every_operation_and_refusal_is_there(client: httpx.Client) -> None:
    schema = client.get("/openapi.json").json()
    assert set(schema["paths"]) == {"/healthz", "/metrics", "/v1/models", "/v1/models/{name}", PREDICT}
    responses = schema["paths"][PREDICT]["post"]["responses"]
    assert {"200", "400", "401", "403", "404", "406", "408", "413", "415", "422", "503"} <= set(responses)
    for status, response in responses.items():
        if status != "200":
            assert response["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/Error"}
            assert response["description"] == STATUSES[int(status)][1]
    assert set(schema["paths"][PREDICT]["post"]["requestBody"]["content"]) == set(BODIES)
    assert "security" not in schema["paths"][PREDICT]["post"]


def test_a_token_is_in_the_schema_where_one_is_wanted(saved: Path) -> None:
    schema = create_app(Settings(saved, token="x" * 20)).openapi()
    assert schema["paths"][PREDICT]["post"]["security"] == [{"token": []}]
    assert schema["paths"]["/healthz"]["get"]["security"] == []


def test_kinds_are_those_of_the_registry(saved: Path, tmp_path: Path) -> None:
    jobs = JobsPlace(str(tmp_path / "jobs"), scheduler="tcp://127.0.0.1:8786")
    schema = create_app(Settings(saved, jobs=jobs)).openapi()
    estimator = schema["components"]["schemas"]["JobRequest"]["properties"]["estimator"]
    assert estimator["enum"] == list(KINDS)
    assert all(f"{kind.name}: {kind.title}" in estimator["description"] for kind in KINDS.values())
    flags = {each["name"]: each.get("description", "") for each in schema["paths"][PREDICT]["post"]["parameters"]}
    for able in ("std", "probabilities"):
        names = flags[able].partition(": ")[2].split(", ")
        assert names == [kind.name for kind in PREDICTORS.values() if getattr(kind, able)]


def test_answers_are_what_the_schema_says(client: httpx.Client, rows: np.ndarray) -> None:
    schema = client.get("/openapi.json").json()
    validator(schema, "Health").validate(client.get("/healthz").json())
    validator(schema, "ModelList").validate(client.get("/v1/models").json())
    for name in ("ridge", "two", "labels", "gp", "gp-classifier", "features"):
        validator(schema, "Model").validate(client.get(f"/v1/models/{name}").json())
    validator(schema, "Error").validate(client.get("/v1/models/none").json())
    for name, query in (("two", ""), ("labels", ""), ("gp", "?std=true"), ("gp-classifier", "?probabilities=true")):
        for body in ({"row": rows[0].tolist()}, {"rows": rows[:2].tolist()}):
            validator(schema, "Rows").validate(body)
            answer = client.post(f"/v1/models/{name}/predict{query}", json=body)
            validator(schema, "Predictions").validate(answer.json())


def test_what_is_told_of_a_model(client: httpx.Client, estimators: dict[str, Any]) -> None:
    told = client.get("/v1/models/ridge").json()
    model = estimators["ridge"].model_
    assert told["certificate"] == model.config["certificate"]
    assert told["basis_size"] == 30
    assert told["columns"] == ["x0", "x1", "x2", "x3"]
    assert told["fitted_on"]["rows"] == model.config["rows"]
    assert told["digest"] == model.digest
    curve = told["residual_curve"]
    assert curve["basis_size"][0] == 0
    assert curve["basis_size"][-1] == 30
    path = model.residual_path
    assert curve["share"] == [path[rank] / path[0] for rank in curve["basis_size"]]
    np.testing.assert_array_equal(told["example"], estimators["ridge"].components_[0])
    assert (told["std"], told["probabilities"]) == (False, False)
    assert client.get("/v1/models/gp").json()["std"]
    assert client.get("/v1/models/gp-classifier").json()["classes"] == ["high", "low", "middle"]


def test_a_metric_has_the_weights_of_columns_by_name(client: httpx.Client, estimators: dict[str, Any]) -> None:
    told = client.get("/v1/models/two").json()
    assert told["metric"] == {
        "form": "given",
        "columns": 3,
        "held_out_error": None,
        "plain_error": None,
        "weights": {"x0": 2.0, "x1": 1.0, "x2": 0.5, "x3": 0.0},
    }
    # The example is a row as stored, not as the metric maps it.
    np.testing.assert_array_equal(told["example"], estimators["two"].components_[0])
    assert client.get("/v1/models/ridge").json()["metric"] is None
