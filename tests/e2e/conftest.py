import os
import pathlib
import pickle
import subprocess

import pytest

import providers
from http_client import OBSERVED, Client
from outbox import Outbox, policy
from plain_server import Server
from semel_process import Postgres, Semel, binary

STORAGES = ("sqlite", "postgres")
SECONDS = float(os.environ.get("SEMEL_E2E_SECONDS", "8"))
STORAGES_IN_TIME = STORAGES if SECONDS >= 30 else STORAGES[:1]  # for what hardly depends on the storage


def pytest_configure(config):
    if not os.access(binary(), os.X_OK):
        raise pytest.UsageError(f"there is no binary {binary()}; build it, or name one with SEMEL_BINARY")


def pytest_sessionfinish():
    """One of several processes leaves what it saw for the one that compares it with the OpenAPI document."""
    place = os.environ.get("SEMEL_E2E_OBSERVED")
    if place and OBSERVED:
        (pathlib.Path(place) / f"{os.getpid()}.pickle").write_bytes(pickle.dumps(OBSERVED))


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.path.name == "test_openapi.py")  # it looks at what the others were answered


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    house = item.funcargs.get("house") if hasattr(item, "funcargs") else None
    if report.failed and house is not None:
        for daemon in house.daemons:
            report.sections.append((f"log of {daemon.data.name}", daemon.said()[-8000:]))


@pytest.fixture(scope="session")
def seconds():
    """How long the tests that break things go on."""
    return SECONDS


EVIDENCE = {}  # test -> what its runs counted together


@pytest.fixture
def evidence(request):
    """Takes what a test counted, when it has passed. Runs of one test are added up; `most_…` is the greatest of them."""

    def tell(**counts):
        total = EVIDENCE.setdefault(request.node.originalname, {"runs": 0})
        total["runs"] += 1
        for name, value in counts.items():
            total[name] = max(total.get(name, 0), value) if name.startswith("most_") else total.get(name, 0) + value

    return tell


def pytest_terminal_summary(terminalreporter):
    """One line for each test, for a collector to read."""
    for test, counts in EVIDENCE.items():
        terminalreporter.write_line(f"evidence: {test} " + " ".join(f"{name}={value:.10g}" for name, value in counts.items()))


@pytest.fixture(scope="session")
def postgres():
    cluster = Postgres()
    if cluster.bin is None:
        pytest.skip("PostgreSQL is not installed")
    try:
        cluster.create()
        yield cluster
    finally:
        cluster.remove()


class House:
    """Makes daemons and clients for one test, and ends them all."""

    def __init__(self, directory, request):
        self.directory, self.request = directory, request
        self.daemons, self.clients, self.databases = [], [], []

    def make(self, storage="sqlite", policy=None, name=None, **options):
        """A daemon that is not started yet. `policy` is text."""
        name = name or f"data{len(self.daemons)}"
        if policy is not None:
            path = self.directory / f"{name}.yaml"
            path.write_text(policy)
            options["policy"] = path
        if storage == "postgres" and "db" not in options:
            self.databases.append(self.request.getfixturevalue("postgres").database())
            options["db"] = self.databases[-1]
        daemon = Semel(options.pop("data", None) or self.directory / name, **options)
        self.daemons.append(daemon)
        return daemon

    def start(self, *args, **options):
        return self.make(*args, **options).start()

    def client(self, daemon, **options):
        client = Client(daemon.port, **options)
        self.clients.append(client)
        return client

    def end(self):
        for client in self.clients:
            client.close()
        for daemon in self.daemons:
            daemon.end()
        while self.databases:
            self.request.getfixturevalue("postgres").drop(self.databases.pop())


@pytest.fixture
def house(tmp_path, request):
    made = House(tmp_path, request)
    yield made
    made.end()


@pytest.fixture(scope="module")
def module_house(tmp_path_factory, request):
    made = House(tmp_path_factory.mktemp("house"), request)
    yield made
    made.end()


@pytest.fixture(params=STORAGES)
def storage(request):
    return request.param


@pytest.fixture
def semel(house, storage):
    """A fresh daemon, without tokens, on either storage."""
    return house.start(storage)


@pytest.fixture
def client(house, semel):
    return house.client(semel)


@pytest.fixture
def fakes():
    """Makes fakes in this process and ends them."""
    made = []

    def make(name="generic", **options):
        made.append(providers.start(name, **options))
        return made[-1]

    yield make
    for fake in made:
        fake.stop()


@pytest.fixture
def fake(fakes):
    return fakes()


@pytest.fixture
def opened(house):
    """A daemon with these destinations, and its outbox."""

    def make(storage="sqlite", more=None, options=(), **destinations):
        daemon = house.start(storage, policy=policy(destinations, **(more or {})), options=options)
        box = Outbox(house.client(daemon))
        box.daemon = daemon
        return box

    return make


@pytest.fixture
def server():
    made = []

    def make(answer):
        made.append(Server(answer))
        return made[-1]

    yield make
    for one in made:
        one.stop()


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    place = tmp_path_factory.mktemp("tls")
    cert, key = place / "cert.pem", place / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", cert], check=True, capture_output=True)
    return cert, key
