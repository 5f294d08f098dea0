#!/bin/sh
# A person clicks twice; both clicks show the same receipt.
set -eu
cd "$(dirname "$0")"
./submit.sh 1001 > first.out &
./submit.sh 1001 > second.out
wait $!
cmp first.out second.out
cat first.out
