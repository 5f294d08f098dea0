#!/bin/sh
# cron starts it, starts it again while it runs, and once more afterwards. All three get the output of the one that ran.
set -eu
cd "$(dirname "$0")"
semel run --key 'digest:2026-11-16' -- ./digest.sh > first.out 2> first.err &
first=$!
semel run --key 'digest:2026-11-16' -- ./digest.sh > second.out 2> second.err
wait "$first"
semel run --key 'digest:2026-11-16' -- ./digest.sh > third.out 2> third.err
cmp first.out second.out
cmp first.out third.out
cat third.out
