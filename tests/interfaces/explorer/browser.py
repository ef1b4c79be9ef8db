"""A real Chromium for tests, driven by Playwright: Debian's, or the one that the environment names."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = os.environ.get("SEMMEM_TEST_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser") or ""
MISSING = (
    "playwright is not installed (make install-dev)" if importlib.util.find_spec("playwright") is None
    else "" if CHROMIUM else "chromium is not installed (apt-get install chromium)"
)  # fmt: skip

VENDOR = Path(__file__).with_name("vendor")


def barriers(page: Any) -> list[str]:
    """Return what axe-core finds on a page: each rule that is broken, with the first element that breaks it."""
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate((VENDOR / "axe.min.js").read_text(encoding="utf-8"))
    page.evaluate("() => Promise.all(document.getAnimations().map((one) => one.finished.catch(() => null)))")
    found = page.evaluate("() => axe.run(document, { resultTypes: ['violations'] })")["violations"]
    return [f"{one['id']}: {one['help']}: {one['nodes'][0]['html'][:120]}" for one in found]


def expect(locator: Any) -> Any:
    """Return Playwright's assertions of a locator, which wait until they hold."""
    from playwright.sync_api import expect

    return expect(locator)


@contextmanager
def chromium() -> Iterator[Any]:
    """Yield a browser."""
    import playwright.sync_api

    playwright.sync_api.expect.set_options(timeout=30_000)
    with playwright.sync_api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def watched(browser: Any, **options: Any) -> Iterator[Any]:
    """Yield a page; it may say nothing on its console that is an error, and may ask its own server alone."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
    page = context.new_page()
    page.set_default_timeout(30_000)
    errors: list[str] = []
    hosts: set[str] = set()
    page.on("console", lambda said: errors.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: hosts.add(request.url.split("/")[2]) if "://" in request.url else None)
    page.errors, page.hosts = errors, hosts
    try:
        yield page
    finally:
        context.close()
