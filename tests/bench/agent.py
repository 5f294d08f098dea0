#!/usr/bin/env python3
"""./dev bench agent [PART…] [--quick]: what semel adds to the calls of an agent, over direct calls in the same run. Each part is a program beside this one."""

import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PARTS = {"llm": "agent_llm.py", "mcp": "agent_mcp.py"}  # what can be measured: name -> program


def main():
    names = [word for word in sys.argv[1:] if word in PARTS] or list(PARTS)
    options = [word for word in sys.argv[1:] if word not in PARTS]
    return max(subprocess.run([sys.executable, os.path.join(HERE, PARTS[name]), *options]).returncode for name in names)


if __name__ == "__main__":
    sys.exit(main())
