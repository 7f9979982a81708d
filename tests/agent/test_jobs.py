"""What a job may and may not: its process, its limits, its files. The jobs are shell scripts sent as the program."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from agents import Agent
from fakes.known_kernels import known_kernels

from xnncc.device.agent_client import NETWORK_LIMITS, AgentClient
from xnncc.device.agent_frames import Kind, Limits, Trouble, Type, job_body, read_done, read_error
from xnncc.device.agent_wire import AgentRefusal
from xnncc.device.bench import Measurement
from xnncc.device.runner import tool_program
from xnncc.errors import DeviceError

FILES = {"library": b"library", "package": b"package", "inputs": b"inputs"}


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    agent = Agent(tmp_path_factory.mktemp("agent"))
    yield agent
    agent.stop()


@pytest.fixture
def client(agent: Agent) -> Iterator[AgentClient]:
    with agent.connect() as client:
        yield client
        assert client.status()  # whatever the job did, the session goes on
    assert agent.is_alive() and agent.jobs() == [] and agent.log == ""


def run(client: AgentClient, script: str, limits: Limits = NETWORK_LIMITS, **more: int) -> tuple[str, bytes]:
    """Return what a script said, and what it wrote to ``outputs``."""
    files = client.put_all({**FILES, "program": b"#!/bin/sh\n" + script.encode()})
    threads, mask = more.get("threads", 1), more.get("core_mask", 0)
    return client.network(Kind.RUN, files, ["graph", "0@1:1"], threads, mask, limits)


def test_its_arguments_are_the_runners(client: AgentClient) -> None:
    text, outputs = run(client, 'echo "$1 $4 $5 $6 $8"; cat "$2" "$3" "$7"; printf "%s" "$PWD" > "$8"', threads=3)
    assert text == "run graph 3 0@1:1 outputs\nlibrarypackageinputs\n"
    assert "/job-" in outputs.decode()


def test_it_inherits_nothing(client: AgentClient) -> None:
    look = "i=0; while [ $i -lt 256 ]; do [ -e /proc/$$/fd/$i ] && echo $i; i=$((i+1)); done"
    text, _ = run(client, f"{look}; env -u PWD -u _ -u OLDPWD -u SHLVL")
    assert text.split() in (["0", "1", "2", "10"], ["0", "1", "2", "255"])  # the last: the shell's hold on its script


def test_its_limits_hold(client: AgentClient) -> None:
    limits = Limits(memory_bytes=3 << 30, file_bytes=1 << 20, cpu_seconds=7, line_cpu_ms=0)
    text, _ = run(client, "ulimit -v; ulimit -f; ulimit -t; ulimit -c", limits)
    assert text.split() == [str(3 << 20), str(1 << 11), "7", "0"]  # KiB, blocks of 512 bytes, seconds


def test_it_stays_on_its_cores(client: AgentClient) -> None:
    core = max(os.sched_getaffinity(0))
    text, _ = run(client, "sed -n 's/^Cpus_allowed_list:\\t//p' /proc/self/status", core_mask=1 << core)
    assert text == f"{core}\n"


def test_too_large_a_file_ends_it(client: AgentClient) -> None:
    with pytest.raises(DeviceError, match=r"ended by SIGXFSZ"):
        run(client, "exec head -c 3000000 /dev/zero > outputs", Limits(file_bytes=1 << 20))


def test_too_many_words_end_it(client: AgentClient) -> None:
    with pytest.raises(DeviceError, match=r"said more than 100000 bytes"):
        run(client, "yes", Limits(output_bytes=100_000))


def test_the_whole_job_has_its_time(client: AgentClient) -> None:
    with pytest.raises(DeviceError, match=r"no end after 0.4 s"):
        run(client, "while :; do echo on; sleep 0.05; done", Limits(wall_ms=400))
    with pytest.raises(DeviceError, match=r"no end after 0.3 s"):  # also when it has closed its ends
        run(client, "exec >&- 2>&-; exec sleep 1000", Limits(wall_ms=300))


def test_what_it_started_ends_with_it(client: AgentClient) -> None:
    text, _ = run(client, "sleep 1000 & echo $!")
    for _ in range(500):  # it was killed before DONE came; the system ends it when it comes to it
        if _state(int(text)) in "ZX":
            return
        time.sleep(0.02)
    raise AssertionError(f"process {text.strip()} goes on")


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def test_an_exit_code_is_told_with_its_last_words(client: AgentClient) -> None:
    with pytest.raises(DeviceError, match=r"the network on tcp:127.0.0.1:[0-9]+: inputs: the file is too short"):
        run(client, "echo 'inputs: the file is too short'; exit 1")


def test_a_long_output_file_comes_whole(client: AgentClient) -> None:
    _, outputs = run(client, "yes xnncc | head -c 1500000 > outputs")
    assert outputs == (b"xnncc\n" * 250_000)


def test_a_device_without_a_loader_runs_a_program_of_its_own(client: AgentClient, agent: Agent, tmp_path: Path) -> None:
    library, groups = known_kernels(agent.target, tmp_path, 3)
    files = {"library": library.library.read_bytes(), "package": library.package.read_bytes()}
    names = client.put_all({**files, "program": tool_program(agent.target, "measure").read_bytes()})
    results = list(client.measure(names, library.graph_symbol, groups, 2))
    assert [r.candidate for r in results if isinstance(r, Measurement)] == [0, 1, 2]


def test_a_program_that_does_not_start_is_told(client: AgentClient) -> None:
    files = client.put_all({**FILES, "program": b"neither a script nor an ELF file"})
    with pytest.raises(DeviceError, match=r"xnncc-agent: program: the system does not start it"):
        client.network(Kind.RUN, files, ["graph", "0@1:1"], 1, 0, NETWORK_LIMITS)


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        ({"kind": 0}, Trouble.BAD_JOB, "has another form"),
        ({"kind": 5}, Trouble.BAD_JOB, "has another form"),
        ({"reserved": 1}, Trouble.BAD_JOB, "has another form"),
        ({"threads": 257}, Trouble.BAD_JOB, "threads are not 0 to 256"),
        ({"arguments": 3}, Trouble.BAD_JOB, "wrong number of arguments"),
        ({"files": 9}, Trouble.BAD_JOB, "wrong number of arguments or files"),
        ({"files": 2}, Trouble.BAD_JOB, "the job lacks a file"),
        ({"cut": 1}, Trouble.BAD_JOB, "too long, or holds a zero byte"),
        ({"cut": 60}, Trouble.BAD_JOB, "a name that no job knows|lacks a file"),
        ({"more": b"x"}, Trouble.BAD_JOB, "there are bytes behind the job"),
        ({"name": b"../evil"}, Trouble.BAD_JOB, "a name that no job knows"),
        ({"name": b"package"}, Trouble.BAD_JOB, "or comes twice"),
        ({"zero": True}, Trouble.BAD_JOB, "holds a zero byte"),
        ({"sha": True}, Trouble.MISSING, "is not in the store"),
    ],
)
def test_a_job_out_of_bounds_is_refused(client: AgentClient, change: dict[str, object], kind: int, words: str) -> None:
    body = bytearray(job_body(Kind.RUN, client.put_all(FILES), ["graph", "0@1:1"], 1, 0, Limits()))
    for name, at in {"kind": 0, "reserved": 1, "files": 4, "arguments": 5}.items():
        if name in change:
            body[at] = int(str(change[name]))
    if "threads" in change:
        body[2:4] = int(str(change["threads"])).to_bytes(2, "little")
    if "name" in change:
        body = body.replace(b"library", bytes(change["name"]))  # type: ignore[call-overload]
    if "zero" in change:
        body = body.replace(b"graph", b"gr\0ph")
    if "sha" in change:
        body = body.replace(sha256(FILES["package"]).digest(), bytes(32))
    body = body[: len(body) - int(str(change.get("cut", 0)))] + bytes(change.get("more", b""))  # type: ignore[call-overload]
    client.wire.send(Type.JOB, bytes(body))
    with pytest.raises(AgentRefusal, match=words) as refusal:
        client.wire.receive()
    assert refusal.value.kind == kind


def test_cancel_ends_a_job_and_not_the_session(client: AgentClient) -> None:
    files = client.put_all({**FILES, "program": b"#!/bin/sh\necho on; exec sleep 1000\n"})
    client.wire.send(Type.JOB, job_body(Kind.RUN, files, ["g", "0@1:1"], 1, 0, Limits()))
    while client.wire.receive()[0] != Type.OUTPUT:
        pass
    client.wire.send(Type.CANCEL)
    while (frame := client.wire.receive())[0] != Type.DONE:
        pass
    assert read_done(frame[1]).how == 5
    client.wire.send(Type.CANCEL)  # one that comes too late does nothing
    assert client.status()


def test_during_a_job_only_ping_and_cancel_are_heard(agent: Agent) -> None:
    with agent.connect() as client:
        files = client.put_all({**FILES, "program": b"#!/bin/sh\nexec sleep 1000\n"})
        client.wire.send(Type.JOB, job_body(Kind.RUN, files, ["g", "0@1:1"], 1, 0, Limits()))
        client.wire.send(Type.STATUS)
        with pytest.raises(AgentRefusal, match=r"during a job there is only PING and CANCEL"):
            while True:
                client.wire.receive()


def test_errors_have_a_kind_and_words() -> None:
    assert read_error(b"\x02\x00the disk is full") == (2, "the disk is full")
