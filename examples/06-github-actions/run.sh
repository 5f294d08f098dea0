#!/bin/sh
# What a runner does with the step: the same commit, first by push, then by "Re-run all jobs" (same run, next attempt), then by hand.
set -eu
cd "$(dirname "$0")"
step=$(sed -n '/run: |/,$p' release.yml | sed '1d; s/^          //')
export GITHUB_REPOSITORY=acme/crm GITHUB_SHA=5f3c2a1 GITHUB_RUN_ID=1 GITHUB_RUN_ATTEMPT=1
sh -e -c "$step"
GITHUB_RUN_ATTEMPT=2 sh -e -c "$step"
GITHUB_RUN_ID=2 sh -e -c "$step"
