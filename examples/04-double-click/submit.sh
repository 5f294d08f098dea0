#!/bin/sh
# What the form's handler does, with nothing but curl: claim, act, confirm. $1 is the order that the form shows.
set -eu
semel=$SEMEL_URL/v1/claims
field() { sed -n "s/.*\"$1\":\"\{0,1\}\([^\",}]*\).*/\1/p"; }

answer=$(curl -sS "$semel" -d "{\"workflow\":\"order\",\"key\":\"order:$1\",\"wait_ms\":10000}")
case $(echo "$answer" | field answer) in
    proceed)
        intent=$(echo "$answer" | field intent) fence=$(echo "$answer" | field fence) key=$(echo "$answer" | field downstream_key)
        charge=$(curl -fsS -X POST "$WORLD_URL/charge" -H "Idempotency-Key: $key" -d amount=4900)
        curl -fsS -o /dev/null "$semel/$intent/confirm" -d "{\"fence\":$fence,\"result\":$charge}"
        echo "$charge" ;;
    replay)
        echo "$answer" | sed 's/.*"result":\({[^}]*}\).*/\1/' ;;
    *)
        echo "$answer" >&2
        exit 1 ;;
esac
