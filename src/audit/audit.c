#include "audit/audit.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>

#include "audit/results.h"

#define VERIFY_PAGE RESULTS_MAX

void audit_batch_init(struct audit_batch *batch, struct arena *arena)
{
    *batch = (struct audit_batch){.arena = arena};
}

struct row_decision *audit_add(struct audit_batch *batch)
{
    if (batch->count == batch->cap) {
        size_t cap = batch->cap == 0 ? 64 : batch->cap * 2;
        struct row_decision *rows = arena_zalloc(batch->arena, cap, sizeof *rows);
        struct bytes *notes = arena_zalloc(batch->arena, cap, sizeof *notes);
        if (rows == NULL || notes == NULL) {
            batch->failed = true;
            return NULL;
        }
        if (batch->count > 0) {
            memcpy(rows, batch->rows, batch->count * sizeof *rows);
            memcpy(notes, batch->notes, batch->count * sizeof *notes);
        }
        batch->rows = rows;
        batch->notes = notes;
        batch->cap = cap;
    }
    struct row_decision *row = &batch->rows[batch->count++];
    *row = (struct row_decision){.count = 1};
    return row;
}

void audit_note(struct audit_batch *batch, struct bytes space, int64_t intent, struct bytes json)
{
    size_t at = batch->count;
    while (at > 0 && batch->rows[at - 1].intent != intent)
        at--;
    if (at == 0) {
        struct row_decision *row = audit_add(batch);
        if (row == NULL)
            return;
        row->space = space;
        row->kind = AUDIT_OUTBOX;
        row->intent = intent;
        row->state = -1;
        row->actor = BYTES("semel");
        at = batch->count;
    }
    struct bytes *notes = &batch->notes[at - 1];
    *notes = notes->at == NULL ? arena_dup(batch->arena, json)
                               : arena_printf(batch->arena, "%.*s,%.*s", BYTES_ARG(*notes), BYTES_ARG(json));
    if (notes->at == NULL)
        batch->failed = true;
}

/* The notes become the last member of the row's detail. */
static void write_notes(struct audit_batch *batch, size_t at)
{
    struct row_decision *row = &batch->rows[at];
    struct bytes detail = row->detail.at != NULL ? row->detail : BYTES("{}"), notes = batch->notes[at];
    if (notes.at == NULL)
        return;
    detail.len--;
    row->detail = arena_printf(batch->arena, "%.*s%s\"%.*s\":[%.*s]}", BYTES_ARG(detail), detail.len > 1 ? "," : "",
                               BYTES_ARG(AUDIT_OUTBOX), BYTES_ARG(notes));
    if (row->detail.at == NULL)
        batch->failed = true;
}

static struct hash row_hash(const struct row_decision *row, const struct hash *previous)
{
    const int64_t numbers[] = {row->id,    row->lane,  row->seq,   row->at,     row->run, row->intent,
                               row->fence, row->state, row->count, row->policy, row->body};
    uint64_t packed[sizeof numbers / sizeof *numbers];
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        packed[i] = htobe64((uint64_t)numbers[i]);
    const struct bytes parts[] = {
        hash_bytes(previous), {(const char *)packed, sizeof packed}, row->space, row->kind, row->actor, row->reason, row->detail,
    };
    return hash_parts(parts, sizeof parts / sizeof *parts);
}

void audit_seal(struct audit_batch *batch, struct audit_chain *chain, struct id_source *ids, int64_t wall_us, int64_t run_us)
{
    struct hash *hashes = arena_zalloc(batch->arena, batch->count, sizeof *hashes);
    if (hashes == NULL) {
        batch->failed = true;
        return;
    }
    for (size_t i = 0; i < batch->count; i++) {
        struct row_decision *row = &batch->rows[i];
        write_notes(batch, i);
        row->id = id_next(ids, wall_us);
        row->lane = chain->lane;
        row->seq = ++chain->seq;
        row->at = wall_us;
        row->run = run_us;
        hashes[i] = row_hash(row, &chain->hash);
        row->hash = hash_bytes(&hashes[i]);
        chain->hash = hashes[i];
    }
    chain->run_us = run_us;
}

enum status audit_save(struct store *store, const struct audit_batch *batch, const struct audit_chain *chain,
                       const struct id_source *ids, struct why *why)
{
    if (batch->failed)
        return why_set(why, FULL, "no memory for the audit rows");
    TRY(store_run(store, &DECISION_ADD, batch->rows, batch->count, NULL, NULL, NULL, why));
    struct q_lane_put put = {chain->lane, chain->seq, ids->last, chain->run_us, hash_bytes(&chain->hash)};
    return store_run(store, &LANE_PUT, &put, 1, NULL, NULL, NULL, why);
}

struct tail {
    struct audit_chain *chain;
    int64_t last_id;
};

static enum status read_tail(void *ctx, const void *row, struct why *why)
{
    struct tail *tail = ctx;
    const struct r_lane_get *got = row;
    if (got->hash.len != HASH_SIZE)
        return why_set(why, BROKEN, "the tail of the audit chain is damaged");
    tail->chain->seq = got->seq;
    tail->chain->run_us = got->run;
    memcpy(tail->chain->hash.at, got->hash.at, HASH_SIZE);
    tail->last_id = got->id;
    return OK;
}

enum status audit_chain_load(struct store *store, uint32_t lane, struct audit_chain *ret_chain, int64_t *ret_last_id,
                             struct why *why)
{
    struct audit_chain chain = {.lane = lane};
    struct tail tail = {&chain, 0};
    struct q_lane_get get = {lane};
    TRY(store_run(store, &LANE_GET, &get, 1, read_tail, &tail, NULL, why));
    *ret_chain = chain;
    *ret_last_id = tail.last_id;
    return OK;
}

/* ---- verifying ---- */

struct walk {
    struct audit_verified *ret;
    struct audit_chain chain;
    int64_t last_id;
    size_t page;
    struct results *results;
};

static enum status bad(struct walk *walk, int64_t id, const char *what)
{
    if (walk->ret->bad_id == 0) {
        char text[32];
        id_format("dec", id, text);
        walk->ret->bad_id = id;
        snprintf(walk->ret->bad, sizeof walk->ret->bad, "%s (lane %u): %s", text, walk->chain.lane, what);
    }
    return OK;
}

static enum status verify_row(void *ctx, const void *at, struct why *why)
{
    struct walk *walk = ctx;
    const struct row_decision *row = at;
    walk->page++;
    walk->last_id = row->id;
    if (walk->ret->bad_id != 0)
        return OK;
    walk->ret->rows++;
    if (row->seq != walk->chain.seq + 1)
        return bad(walk, row->id, "a row before it is missing");
    struct hash hash = row_hash(row, &walk->chain.hash);
    if (!hash_equal(hash_bytes(&hash), row->hash))
        return bad(walk, row->id, "its contents do not match its hash");
    walk->chain.seq = row->seq;
    walk->chain.hash = hash;
    return results_note(walk->results, row, why);
}

static enum status verify_results(struct store *store, struct walk *walk, struct why *why)
{
    int64_t bad_id;
    const char *what = "";
    TRY(results_check(store, walk->results, &bad_id, &what, why));
    return bad_id != 0 ? bad(walk, bad_id, what) : OK;
}

static enum status verify_lane(struct store *store, const struct r_lane_list *lane, struct results *results,
                               struct audit_verified *ret, struct why *why)
{
    struct walk walk = {.ret = ret, .chain = {.lane = (uint32_t)lane->lane}, .results = results};
    do {
        walk.page = 0;
        struct q_decision_chain page = {lane->lane, walk.last_id, VERIFY_PAGE};
        TRY(store_run(store, &DECISION_CHAIN, &page, 1, verify_row, &walk, NULL, why));
        TRY(verify_results(store, &walk, why));
    } while (walk.page == VERIFY_PAGE && ret->bad_id == 0);
    if (ret->bad_id == 0 && (walk.chain.seq != lane->seq || !hash_equal(hash_bytes(&walk.chain.hash), lane->hash)))
        return bad(&walk, walk.last_id != 0 ? walk.last_id : 1, "the end of the chain is missing or changed");
    return OK;
}

struct lanes {
    struct r_lane_list at[ID_LANES];
    struct hash hashes[ID_LANES];
    size_t count;
    struct results results;
};

static enum status read_lane(void *ctx, const void *row, struct why *why)
{
    struct lanes *lanes = ctx;
    const struct r_lane_list *got = row;
    if (lanes->count == ID_LANES || got->hash.len != HASH_SIZE)
        return why_set(why, BROKEN, "the table of lanes is damaged");
    size_t n = lanes->count++;
    memcpy(lanes->hashes[n].at, got->hash.at, HASH_SIZE);
    lanes->at[n] = *got;
    lanes->at[n].hash = hash_bytes(&lanes->hashes[n]);
    return OK;
}

enum status audit_verify(struct store *store, struct audit_verified *ret, struct why *why)
{
    *ret = (struct audit_verified){0};
    struct lanes *lanes = calloc(1, sizeof *lanes);
    if (lanes == NULL)
        return why_set(why, FULL, "no memory to verify the audit");
    enum status status = store_run(store, &LANE_LIST, NULL, 0, read_lane, lanes, NULL, why);
    for (size_t i = 0; status == OK && i < lanes->count && ret->bad_id == 0; i++, ret->lanes++)
        status = verify_lane(store, &lanes->at[i], &lanes->results, ret, why);
    free(lanes);
    return status;
}
