"""The former address of the interfaces: a module found there is the module itself, and a warning names the new one."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.slow
@pytest.mark.parametrize("module", ["tools", "mem0", "langgraph", "cli.show", "claude_memory"])
def test_a_module_of_doors_is_the_one_of_interfaces(module: str) -> None:
    code = f"""
import warnings
warnings.simplefilter("error")
try:
    import semmem.doors
except DeprecationWarning as told:
    print(told)
warnings.simplefilter("ignore")
import semmem.doors.{module} as former
import semmem.interfaces.{module} as present
assert former is present and present.__name__ == present.__spec__.name == "semmem.interfaces.{module}"
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    told = "semmem.doors is now called semmem.interfaces; the former name works until the next release.\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, told, "")
