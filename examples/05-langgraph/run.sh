#!/bin/sh
# A graph that retries, and a model that repeats itself. Needs Node 20 and `npm install` in this folder.
set -eu
cd "$(dirname "$0")"
exec node agent.mjs
