#!/bin/sh
# Takes longer than the time between two starts.
set -eu
sleep 0.3
curl -fsS -o /dev/null -X POST "$WORLD_URL/digest"
echo "sent 214 mails"
