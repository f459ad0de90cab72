"""Fixtures for all tests: the pretend testbed `lake` (tests/lake.py) and its scripted policy, by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import lake
from browsing import chromium
from t2t_core.plugins import installed

# On a machine that is busy with other work, drawing an example may take a second and say nothing of the test.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what tests recorded as "summary", so that these counts are visible even if several processes run the tests."""
    for report in terminalreporter.getreports("passed"):
        for name, text in report.user_properties:
            if name == "summary":
                terminalreporter.write_line(text)


@pytest.fixture(autouse=True)
def registries_as_they_were() -> Iterator[None]:
    """Remove everything that a test has registered, so that another test may use the same name."""
    before = [(registry, dict(registry.entries), list(registry.refused)) for registry in installed().registries.values()]
    yield
    for registry, entries, refused in before:
        registry.entries.clear()
        registry.entries.update(entries)
        registry.refused[:] = refused


@pytest.fixture
def lake_plugins() -> Iterator[None]:
    """The testbed `lake` and the policy `repeater` are registered while the test runs."""
    plugins = installed()
    plugins.testbeds.add("lake", lambda argument, settings: lake.Lake(), "pretend testbed")
    plugins.policies.add("repeater", lake.Repeater, "scripted policy")
    yield
    del plugins.testbeds.entries["lake"], plugins.policies.entries["repeater"]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A Chromium. The test is skipped if there is no Chromium or no playwright."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install -e '.[browser]'")
    if chromium() is None:
        pytest.skip("there is no chromium on this machine")
    with playwright.sync_playwright() as running:
        started = running.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        yield started
        started.close()
