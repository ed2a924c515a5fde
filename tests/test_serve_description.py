"""The OpenAPI description says what the server does: schemathesis asks what it allows, and what it does not."""

import httpx2
import pytest
import schemathesis
from conftest import new_cache
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance
from serving import SAMPLE, listening, wait_for_corpora

from elmokit.serve import open_service
from elmokit.serve.app import ROUTERS

ROUTES = [(route.path, *route.methods) for router in ROUTERS for route in router.routes]
# one pair of brackets in a text without `position`, and a model's own width: no schema can say that
BEYOND_SCHEMAS = {"/substitutes", "/neighbors", "/v1/embeddings"}


@pytest.fixture(scope="module")
def schema(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ELMOKIT_CACHE", new_cache(tmp_path_factory))
        with listening(open_service(["en"], corpora=[SAMPLE])) as address, httpx2.Client(base_url=address) as client:
            wait_for_corpora(client)
            yield schemathesis.openapi.from_url(f"{address}openapi.json")


@pytest.mark.parametrize("mode", list(GenerationMode))
@pytest.mark.parametrize(("path", "method"), ROUTES)
def test_every_route(schema, path, method, mode):
    operation = schema[path][method]
    if mode.is_negative and not operation.body and not operation.path_parameters:
        pytest.skip("it takes nothing that could be wrong")

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(max_examples=12, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    def ask(case):
        case.call_and_validate(excluded_checks=[positive_data_acceptance] if path in BEYOND_SCHEMAS else [])

    ask()
