#!/bin/sh
# An agent sends three times; then it sends, hears nothing, and sends again.
set -eu
cd "$(dirname "$0")"
exec python3 followup.py
