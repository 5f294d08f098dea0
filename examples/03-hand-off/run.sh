#!/bin/sh
# Two messages that mean the same, two workers that read both: one call.
set -eu
cd "$(dirname "$0")"
exec python3 hand_off.py
