from pathlib import Path
from typing import Any

import jsonschema
import pytest

from orchestrator.app import create_app
from orchestrator.examples import EXAMPLES
from orchestrator.settings import load_settings
from tests.orchestrator.fakes import folder_phones


@pytest.fixture
def document(tmp_path: Path) -> dict[str, Any]:
    app = create_app(load_settings(data_dir=tmp_path).settings, folder_phones(tmp_path))
    described = app.openapi()
    assert app.openapi() is described
    return described


def test_every_operation_names_itself_and_says_how_it_fails(document: dict[str, Any]) -> None:
    operations = [each for path in document["paths"].values() for each in path.values()]
    names = [operation["operationId"] for operation in operations]
    assert document["openapi"].startswith("3.1")
    assert len(set(names)) == len(names) > 25
    for operation in operations:
        assert operation["summary"]
        assert operation["description"], operation["operationId"]
        assert "application/problem+json" in operation["responses"]["default"]["content"]


def test_every_json_body_has_an_example_for_what_must_be_given(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    for path, operations in document["paths"].items():
        for operation in operations.values():
            content = operation.get("requestBody", {}).get("content", {}).get("application/json")
            if content is None:
                continue
            schema = schemas[content["schema"]["$ref"].rpartition("/")[2]]
            required = schema.get("required", [])
            shown = "examples" in schema or all("examples" in schema["properties"][name] for name in required)
            assert shown, path


def test_every_reply_has_an_example_that_is_one(document: dict[str, Any]) -> None:
    shown = 0
    for path, operations in document["paths"].items():
        for operation in operations.values():
            for response in operation["responses"].values():
                for media_type, content in response.get("content", {}).items():
                    if not media_type.endswith("json"):
                        continue
                    name = content["schema"]["$ref"].rpartition("/")[2]
                    (example,) = document["components"]["schemas"][name]["examples"]
                    schema = {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
                    jsonschema.Draft202012Validator(schema).validate(example)
                    shown += 1
            assert operation["responses"], path
    assert shown > 40
    assert EXAMPLES.keys() <= document["components"]["schemas"].keys()
