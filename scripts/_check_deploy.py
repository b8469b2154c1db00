"""Whether the files of deploy/ are what their readers take: schemas, linters, and our own commands, all offline."""

from __future__ import annotations

import copy
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import click
import jsonschema
import yaml

ROOT = Path(__file__).resolve().parent.parent
DEPLOY = ROOT / "deploy"
TOOLS = Path(sysconfig.get_path("scripts"))
# Of every unit: what a process that was taken over may not do.
_HARDENED = {
    "NoNewPrivileges=yes", "CapabilityBoundingSet=", "ProtectSystem=strict", "ProtectHome=yes", "PrivateTmp=yes",
    "PrivateDevices=yes", "ProtectKernelModules=yes", "ProtectKernelTunables=yes", "ProtectControlGroups=yes",
    "RestrictNamespaces=yes", "RestrictSUIDSGID=yes", "SystemCallFilter=@system-service",
    "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX",
}  # fmt: skip

Problems = Iterator[str]
# Of C where there is one: the schemas of pods are half a megabyte each.
Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def tool(name: str, *arguments: object) -> Problems:
    """What a program complains of, a line each."""
    found = TOOLS / name if (TOOLS / name).exists() else shutil.which(name)
    done = subprocess.run([str(found), *map(str, arguments)], capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        yield from (done.stdout + done.stderr).strip().splitlines() or [f"exit status {done.returncode}"]


def sources(folder: Path) -> list[Path]:
    """Every file below the folder, but for what Python compiles beside its own."""
    return [path for path in sorted(folder.rglob("*")) if path.is_file() and "__pycache__" not in path.parts]


def shell_scripts() -> list[Path]:
    """Every file of ours that a shell runs, by its first line."""
    candidates = [path for folder in (ROOT / ".ci", ROOT / "scripts", DEPLOY) for path in sources(folder)]
    first = re.compile(rb"#!.*\b(ba)?sh\b|# shellcheck shell=")
    return [path for path in candidates if first.match(path.read_bytes()[:80])]


def shell() -> Problems:
    scripts = shell_scripts()
    # -x: follow what they source; the path of that is put together at run time.
    yield from tool("shellcheck", "--external-sources", "--source-path=SCRIPTDIR", "--exclude=SC1091", *scripts)
    for script in scripts:
        yield from tool("bash", "-n", script)


def dockerfile() -> Problems:
    yield from tool("hadolint", DEPLOY / "Dockerfile")
    text = (DEPLOY / "Dockerfile").read_text()
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    kept = {line[1:] for line in ignored if line.startswith("!")}
    for copied in re.findall(r"^COPY (?!--from)(.*)", text, re.MULTILINE):
        for source in copied.split()[:-1]:
            if not (ROOT / source).exists():
                yield f"COPY {source}: there is no such file"
            if source.removeprefix("./") not in kept:
                yield f"COPY {source}: Dockerfile.dockerignore leaves it out"
    extras = re.findall(r"\[([\w,]+)\]\"", text)
    known = _project()["optional-dependencies"]
    yield from (f"there is no extra {name}" for group in extras for name in group.split(",") if name not in known)


def _project() -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return project


def compose() -> Problems:
    path = DEPLOY / "compose.yaml"
    yield from tool("check-jsonschema", "--builtin-schema", "vendor.compose-spec", path)
    services = yaml.load(path.read_text(), Loader)["services"]
    for name, service in services.items():
        yield from (f"{name}: {problem}" for problem in command(service.get("command")))
        published = [str(port) for port in service.get("ports", [])]
        yield from (f"{name} publishes Dask's port {port}" for port in published if re.search(r"878\d", port))
    asked = set(re.findall(r"\$\{(\w+)", path.read_text()))
    told = set(re.findall(r"^(\w+)=", (DEPLOY / "compose.env.example").read_text(), re.MULTILINE))
    images = {"STREAMKERNEL_IMAGE", "S3_IMAGE"}
    if asked - images != told:
        yield f"compose.env.example and the variables of compose.yaml differ by {sorted((asked - images) ^ told)}"


def kubernetes() -> Problems:
    plain, custom = [], []
    for path in sorted((DEPLOY / "k8s").glob("*.yaml")):
        groups = [document["apiVersion"] for document in yaml.load_all(path.read_text(), Loader)]
        (custom if any(group.startswith("kubernetes.dask.org") for group in groups) else plain).append(path)
    yield from (line for line in tool("kubernetes-validate", "--strict", "--quiet", *plain))
    schemas = dict(_custom_resources())
    for path in custom:
        for document in yaml.load_all(path.read_text(), Loader):
            checker = jsonschema.Draft202012Validator(schemas[document["kind"]])
            for error in checker.iter_errors(document):
                yield f"{path.name}: {'.'.join(map(str, error.absolute_path))}: {error.message}"
    for path in (*plain, *custom):
        for document in yaml.load_all(path.read_text(), Loader):
            for name, words in _containers(document):
                yield from (f"{path.name}: {name}: {problem}" for problem in command(words))


def _custom_resources() -> Iterator[tuple[str, dict[str, Any]]]:
    """Schemas of the operator's kinds; a name that they do not know is an error here, and ignored there."""
    chart = files("dask_kubernetes") / "operator" / "deployment" / "helm" / "dask-kubernetes-operator"
    for path in (chart / "crds").iterdir():
        definition = yaml.load(path.read_text(), Loader)
        schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        yield definition["spec"]["names"]["kind"], closed(schema)


def closed(schema: Any, *, top: bool = True) -> Any:
    """The schema, refusing properties that it does not name."""
    if isinstance(schema, list):
        return [closed(item, top=False) for item in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: closed(value, top=False) for name, value in schema.items()}
    # Of metadata the schema says that it is an object, and no more.
    open_ended = made.get("x-kubernetes-preserve-unknown-fields") or top
    if isinstance(made.get("properties"), dict) and "additionalProperties" not in made and not open_ended:
        made["additionalProperties"] = False
    if made.get("x-kubernetes-int-or-string"):
        made["type"] = ["integer", "string"]
        made.pop("anyOf", None)
    return made


def _containers(document: Any) -> Iterator[tuple[str, list[str]]]:
    if isinstance(document, dict):
        if "image" in document and "name" in document:
            yield document["name"], document.get("args", [])
        document = list(document.values())
    if isinstance(document, list):
        for item in document:
            yield from _containers(item)


def command(words: Any) -> Problems:
    """What is wrong with a command line of `streamkernel` or `dask`: asked of these themselves, nothing is run."""
    if not isinstance(words, list) or not words or words[0] not in ("streamkernel", "dask"):
        return
    words = [re.sub(r"\$\{\w+:?-?([^}]*)\}", lambda found: found[1] or "1", word) for word in map(str, words)]
    if words[0] == "streamkernel":
        from streamkernel.cli.main import streamkernel as group
    else:
        from distributed.cli.dask_scheduler import main as scheduler
        from distributed.cli.dask_worker import main as worker

        group = click.Group(commands={"scheduler": scheduler, "worker": worker})
    if words[1].startswith("-"):
        return
    found = group.get_command(click.Context(group), words[1])
    if found is None:
        yield f"there is no {words[0]} {words[1]}"
        return
    # A path of the machine that this is for need not exist on ours. The commands are the process's own: a copy.
    found = copy.copy(found)
    found.params = [copy.copy(parameter) for parameter in found.params]
    for parameter in found.params:
        if isinstance(parameter.type, click.Path):
            parameter.type = click.Path()
    try:
        found.make_context(words[1], words[2:])
    except click.ClickException as error:
        yield f"{shlex.join(words)}: {error.format_message()}"


def systemd() -> Problems:
    units = sorted((DEPLOY / "systemd").glob("*.service"))
    given = (DEPLOY / "systemd" / "environment.example").read_text()
    variables = dict(re.findall(r"^(\w+)=(.+)$", given, re.MULTILINE))
    for unit in units:
        missing = _HARDENED - set(unit.read_text().splitlines())
        yield from (f"{unit.name} lacks {line}" for line in sorted(missing))
        line = re.search(r"^ExecStart=((?:.*\\\n)*.*)$", unit.read_text(), re.MULTILINE)
        assert line is not None, unit
        started = re.sub(r"\$\{(\w+)\}", lambda found: variables.get(found[1], ""), line[1].replace("\\\n", " "))
        words = shlex.split(started)
        yield from (f"{unit.name}: {problem}" for problem in command([Path(words[0]).name, *words[1:]]))
    if shutil.which("systemd-analyze") is None:
        print("   skipped: systemd-analyze is not on this machine, so the units were not verified")
        return
    with tempfile.TemporaryDirectory() as folder:
        for unit in units:
            # systemd looks whether the program is there; its name and options are what we know.
            text = unit.read_text().replace("/opt/streamkernel/bin", str(TOOLS))
            copy = Path(folder) / unit.name.replace("@.", "@1.")
            copy.write_text(text)
            # It tells of every unit of the machine that it met, and counts what it does not know as no error.
            done = subprocess.run(
                ["systemd-analyze", "verify", "--man=no", str(copy)], capture_output=True, text=True, check=False
            )
            yield from (line for line in done.stderr.splitlines() if copy.stem.partition("@")[0] in line)


def slurm() -> Problems:
    """The script that dask-jobqueue would hand to sbatch, made without SLURM."""
    sys.path.insert(0, str(DEPLOY / "slurm"))
    import dask.config
    import with_workers
    from dask.utils import parse_timedelta

    with_workers.settings(DEPLOY / "slurm" / "jobqueue.yaml")
    asked = dask.config.get("jobqueue.slurm")
    # What SLURMCluster.job_script() returns, without the scheduler that a cluster would start for it.
    job = with_workers.SLURMCluster.job_cls(
        "tls://scheduler:8786", name="worker", protocol="tls://", security=with_workers.security_of(Path("/tls"))
    )
    text = job.job_script()
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "worker.sbatch"
        script.write_text(text)
        yield from tool("shellcheck", "--shell=bash", script)
    started = next(line for line in text.splitlines() if "distributed.cli.dask_worker" in line)
    problems = list(command(["dask", "worker", *shlex.split(started.partition("distributed.cli.dask_worker")[2])]))
    if problems:
        yield from problems
        return
    extra = asked["worker-extra-args"]
    lifetime, stagger = (parse_timedelta(extra[extra.index(name) + 1]) for name in ("--lifetime", "--lifetime-stagger"))
    walltime = sum(int(part) * unit for part, unit in zip(asked["walltime"].split(":"), (3600, 60, 1), strict=True))
    if lifetime + stagger >= walltime:
        yield f"workers live up to {lifetime + stagger:.0f} s, not less than the walltime of {walltime} s"


def scripts() -> Problems:
    """The command lines in our shell scripts, and those in the operators' README."""
    for path in (DEPLOY / "README.md", *shell_scripts()):
        lines = path.read_text().replace("\\\n", " ").splitlines()
        shown = [line for line in lines if line.startswith("$ ") or (path.suffix != ".md" and line.lstrip()[:1] != "#")]
        for line in shown:
            found = re.search(r"(?<![\w/.-])(?:streamkernel|dask) [a-z-]+(?:\s.*)?$", line)
            if found is None:
                continue
            try:
                words = [word for word in shlex.split(found[0], comments=True) if word != "$@"]
            except ValueError:
                continue  # within a text that is printed
            cut = next((at for at, word in enumerate(words) if re.match(r"[&|;]|\d?>", word)), None)
            yield from (f"{path.name}: {problem}" for problem in command(words[:cut]))


CHECKS: dict[str, Callable[[], Problems]] = {
    "shell scripts": shell,
    "Dockerfile": dockerfile,
    "compose.yaml": compose,
    "k8s": kubernetes,
    "systemd": systemd,
    "slurm": slurm,
    "commands": scripts,
}


def main() -> int:
    failed = 0
    for name, check in CHECKS.items():
        problems = list(check())
        print(f"   {name}: {'ok' if not problems else f'{len(problems)} problems'}", flush=True)
        for problem in problems:
            print(f"     {problem}", flush=True)
        failed += bool(problems)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
