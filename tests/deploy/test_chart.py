"""The chart: rendered with every set of values in deploy/helm/ci, and validated strictly against the API of Kubernetes.

kubernetes-validate has no schemas of the objects of KEDA and of the Prometheus operator. What the chart uses of them is
in crd_schemas.json, written from their documentation (KEDA 2.17 and later): it finds misspelt fields, not a field
that means something else there.
"""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.tools import DEPLOY, PENDING, ROOT, command_of, document, documents, run, unknown_options

CHART = DEPLOY / "helm" / "trotline"
SETS = sorted((DEPLOY / "helm" / "ci").glob("*.yaml"))
VERSIONS = ("1.27", "1.33", "1.37")
NAMESPACE = "scraping"
LEAST = ("--set", "places.existingSecret=a", "--set", "web.tokens.existingSecret=b")
Object = dict[str, Any]


@cache
def rendered(values: Path) -> list[Object]:
    ended = run("helm", "template", "shop", CHART, "--namespace", NAMESPACE, "--values", values)
    assert ended.returncode == 0, ended.stderr
    return documents(ended.stdout)


def objects(name: str, *kinds: str) -> list[Object]:
    return [each for each in rendered(DEPLOY / "helm" / "ci" / f"{name}.yaml") if each["kind"] in kinds]


def pods(found: list[Object]) -> list[tuple[str, Object]]:
    return [
        (each["metadata"]["name"], each["spec"]["template"]["spec"]) for each in found if each["kind"] == "Deployment"
    ]


def refused(*settings: str) -> str:
    """Why helm refuses the values; it must."""
    words = [word for setting in settings for word in ("--set", setting)]
    ended = run("helm", "template", "shop", CHART, *LEAST, *words)
    assert ended.returncode != 0, f"{settings} was accepted"
    return ended.stderr


def leaves(values: Any, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    """Values by their path; a list, and a map that is empty by default, is one value."""
    if isinstance(values, dict) and values:
        return {key: leaf for name, each in values.items() for key, leaf in leaves(each, (*path, name)).items()}
    return {path: values}


def at(values: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        if not isinstance(values, dict) or name not in values:
            return None
        values = values[name]
    return values


@pytest.mark.parametrize("values", SETS, ids=lambda path: path.stem)
def test_helm_finds_no_fault(values: Path) -> None:
    ended = run("helm", "lint", "--strict", CHART, "--values", values)
    assert ended.returncode == 0, ended.stdout


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("values", SETS, ids=lambda path: path.stem)
def test_every_object_is_valid(values: Path, version: str) -> None:
    kubernetes_validate = pytest.importorskip("kubernetes_validate")
    jsonschema = pytest.importorskip("jsonschema")
    others = json.loads((Path(__file__).parent / "crd_schemas.json").read_text())
    for each in rendered(values):
        if each["kind"] in others:
            assert each["apiVersion"] == others[each["kind"]]["apiVersion"]
            jsonschema.validate(each, others[each["kind"]]["schema"])
        else:
            kubernetes_validate.validate(each, version, strict=True)


def test_the_validation_refuses_what_is_not_in_the_api() -> None:
    kubernetes_validate = pytest.importorskip("kubernetes_validate")
    [worker] = objects("no-web", "Deployment")
    wrong = json.loads(json.dumps(worker))
    wrong["spec"]["template"]["spec"]["containers"][0]["readOnly"] = True
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, VERSIONS[-1], strict=True)


def test_every_value_is_set_in_one_of_the_sets_to_something_else_than_its_default() -> None:
    defaults = leaves(document(CHART / "values.yaml"))
    sets = [document(path) for path in SETS]
    same = {path for path, default in defaults.items() if all((at(each, path) in (None, default)) for each in sets)}
    assert same == set()


def test_an_unknown_value_is_refused() -> None:
    assert "Additional property replica is not allowed" in refused("workers.replica=3")
    assert "Additional property wrong" in refused("wrong=1")
    assert "Additional property slot" in refused("workers.groups[0].name=a", "workers.groups[0].slot=3")
    schema = (CHART / "values.schema.json").read_text()
    assert schema.count('"additionalProperties": false') >= 20


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (["places.existingSecret="], "places: name an existingSecret"),
        (["places.frontier=redis://queue/0"], "have no effect"),
        (["web.tokens.existingSecret="], "web.tokens: name an existingSecret"),
        (["web.tokens.existingSecret=", "web.tokens.view=short"], "web.tokens.view"),
        (["proxies.enabled=true"], "proxies: name an existingSecret"),
        (["proxies.existingSecret=a"], "set proxies.enabled"),
        (["workers.groups[0].name=a", "workers.groups[1].name=a"], "two groups are named a"),
        (["workers.groups[0].name=a", "workers.groups[0].regions={eu}"], "set proxies.enabled"),
        (["workers.autoscaling.kind=keda", "web.enabled=false"], "keda needs the dashboard"),
        (["workers.autoscaling.minReplicas=9", "workers.autoscaling.maxReplicas=3"], "minReplicas is larger"),
        (["metrics.podMonitor.enabled=true", "metrics.enabled=false"], "needs metrics.enabled"),
        (["web.ingress.enabled=true"], "web.ingress.host"),
        (["workers.grace=0"], "workers.grace"),
        (["spider=--help"], "spider"),
        (["coordinator.replicas=0"], "coordinator.replicas"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_values_that_cannot_work_are_refused_with_the_reason(settings: list[str], why: str) -> None:
    assert why in refused(*settings)


@pytest.mark.parametrize("values", SETS, ids=lambda path: path.stem)
def test_no_pod_can_write_to_its_image_gain_rights_or_reach_the_api(values: Path) -> None:
    for name, pod in pods(rendered(values)):
        assert pod["automountServiceAccountToken"] is False, name
        assert pod["securityContext"]["runAsNonRoot"] is True, name
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }, name
            assert container["resources"]["limits"]["memory"], name
            assert container["livenessProbe"]["exec"], name


@pytest.mark.parametrize("values", SETS, ids=lambda path: path.stem)
def test_every_argument_is_one_of_the_command_line(values: Path) -> None:
    for name, pod in pods(rendered(values)):
        args = pod["containers"][0]["args"]
        assert all(isinstance(word, str) for word in args), name
        if args[0] in PENDING and command_of(args) is None:
            continue
        assert unknown_options(args) - set(PENDING) == set(), name


def test_what_another_part_of_the_program_brings_is_there() -> None:
    """The dashboard's command, and the metrics."""
    waiting = set()
    for _, pod in pods(rendered(DEPLOY / "helm" / "ci" / "made-secrets.yaml")):
        waiting |= unknown_options(pod["containers"][0]["args"])
    if waiting:
        pytest.skip(f"not there yet: {', '.join(sorted(waiting))}")


@pytest.mark.parametrize("values", SETS, ids=lambda path: path.stem)
def test_secrets_are_files_that_the_pods_group_reads_under_run_secrets(values: Path) -> None:
    for name, pod in pods(rendered(values)):
        mounts = {each["name"]: each["mountPath"] for each in pod["containers"][0]["volumeMounts"]}
        for volume in pod["volumes"]:
            if "secret" in volume:
                assert volume["secret"]["defaultMode"] == 0o440, name
                assert mounts[volume["name"]].startswith("/run/secrets/"), name
        assert pod["securityContext"]["fsGroup"] == 10001
        text = json.dumps(pod["containers"][0])
        assert not re.search(r"://[^/\s\"]*:[^/\s\"]*@", text), name


def test_a_worker_has_ten_seconds_more_than_its_visits() -> None:
    for name, pod in pods(objects("made-secrets", "Deployment")):
        args = pod["containers"][0]["args"]
        if args[0] == "work":
            grace = int(args[args.index("--grace") + 1].removesuffix("s"))
            assert pod["terminationGracePeriodSeconds"] == grace + 10 == 70, name


def test_a_group_serves_its_region_on_the_nodes_of_that_region() -> None:
    workers = {name: pod for name, pod in pods(objects("made-secrets", "Deployment")) if "-worker-" in name}
    eu, us = workers["shop-worker-eu"], workers["shop-worker-us"]
    assert eu["nodeSelector"] == {"kubernetes.io/arch": "amd64", "topology.kubernetes.io/region": "eu-central-1"}
    assert "--region eu" in " ".join(eu["containers"][0]["args"])
    assert "--region us --region ca --pool home" in " ".join(us["containers"][0]["args"])
    labels = [each["spec"]["template"]["metadata"]["labels"] for each in objects("made-secrets", "Deployment")]
    assert [each["trotline/region"] for each in labels if "trotline/region" in each] == ["eu"]


def test_spot_nodes_are_tolerated_and_preferred_or_required() -> None:
    workers = {name: pod for name, pod in pods(objects("made-secrets", "Deployment")) if "-worker-" in name}
    for pod in workers.values():
        assert {"key": "example.org/spot", "operator": "Exists", "effect": "NoSchedule"} in pod["tolerations"]
    kinds = {name: list(pod["affinity"]["nodeAffinity"]) for name, pod in workers.items()}
    assert kinds == {
        "shop-worker-eu": ["preferredDuringSchedulingIgnoredDuringExecution"],
        "shop-worker-us": ["requiredDuringSchedulingIgnoredDuringExecution"],
    }
    [(_, pod)] = pods(objects("minimal", "Deployment")[-1:])
    assert "tolerations" not in pod


def test_a_scaled_group_has_no_number_of_its_own() -> None:
    """Each update would set it back."""
    scaled = {each["spec"]["scaleTargetRef"]["name"] for each in objects("made-secrets", "HorizontalPodAutoscaler")}
    assert scaled == {"shop-worker-eu"}
    for each in objects("made-secrets", "Deployment"):
        assert ("replicas" in each["spec"]) is (each["metadata"]["name"] not in scaled)


def test_keda_asks_the_dashboard_by_a_name_that_it_accepts_with_the_view_token() -> None:
    scaled = objects("keda", "ScaledObject")
    [auth] = objects("keda", "TriggerAuthentication")
    [web] = [pod for name, pod in pods(objects("keda", "Deployment")) if name.endswith("-web")]
    assert len(scaled) == 2
    for each in scaled:
        [trigger] = each["spec"]["triggers"]
        url = re.fullmatch(r"http://(books-web\.scraping\.svc):8321/api/v1/scale", trigger["metadata"]["url"])
        assert url is not None
        args = web["containers"][0]["args"]
        assert url[1] in [args[index + 1] for index, word in enumerate(args) if word == "--host-name"]
        assert trigger["metadata"]["valueLocation"] == "wanted_workers"
        assert trigger["authenticationRef"]["name"] == auth["metadata"]["name"]
        assert each["spec"]["fallback"]["behavior"] == "currentReplicas"
    [token] = auth["spec"]["secretTargetRef"]
    assert token == {"parameter": "token", "name": "books-tokens", "key": "token-view"}
    # And the network policy lets it in.
    [policy] = [each for each in objects("keda", "NetworkPolicy") if each["metadata"]["name"] == "books-web"]
    assert policy["spec"]["ingress"][0]["from"][0]["namespaceSelector"]["matchLabels"] == {
        "kubernetes.io/metadata.name": "keda"
    }


def test_workers_reach_the_web_but_no_private_address_and_only_prometheus_reaches_them() -> None:
    [policy] = [each for each in objects("minimal", "NetworkPolicy") if each["metadata"]["name"].endswith("-worker")]
    assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert [rule["ports"] for rule in policy["spec"]["ingress"]] == [[{"port": 9464, "protocol": "TCP"}]]
    blocks = [to["ipBlock"] for rule in policy["spec"]["egress"] for to in rule.get("to", []) if "ipBlock" in to]
    assert {"169.254.0.0/16", "10.0.0.0/8"} <= set(blocks[0]["except"])
    for each in objects("minimal", "NetworkPolicy"):
        if not each["metadata"]["name"].endswith("-worker"):
            assert "0.0.0.0/0" not in json.dumps(each), each["metadata"]["name"]


def test_two_coordinators_are_spread_and_one_of_them_always_stays() -> None:
    [coordinator] = [
        each for each in objects("minimal", "Deployment") if each["metadata"]["name"].endswith("coordinator")
    ]
    assert coordinator["spec"]["replicas"] == 2
    assert coordinator["spec"]["template"]["spec"]["topologySpreadConstraints"]
    [budget] = [
        each for each in objects("minimal", "PodDisruptionBudget") if each["metadata"]["name"].endswith("coordinator")
    ]
    assert budget["spec"]["maxUnavailable"] == 1


def test_the_version_of_the_chart_is_that_of_the_program() -> None:
    version = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.M)
    assert version is not None
    assert document(CHART / "Chart.yaml")["appVersion"] == version[1]
