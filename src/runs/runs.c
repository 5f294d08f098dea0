#include "runs/runs.h"

#include <stdio.h>
#include <stdlib.h>

#define TALLY_ARENA_MAX (1u << 20)

struct tally *tally_new(void)
{
    struct tally *tally = calloc(1, sizeof *tally);
    if (tally != NULL)
        arena_init(&tally->arena, TALLY_ARENA_MAX);
    return tally;
}

void tally_free(struct tally *tally)
{
    if (tally == NULL)
        return;
    arena_release(&tally->arena);
    free(tally);
}

static struct row_run *find(struct tally *tally, const struct row_run *row)
{
    for (size_t i = 0; i < tally->count; i++) {
        struct row_run *one = &tally->at[i];
        if (bytes_eq(one->run, row->run) && bytes_eq(one->space, row->space) && bytes_eq(one->provider, row->provider) &&
            bytes_eq(one->model, row->model))
            return one;
    }
    return NULL;
}

static void add_up(struct row_run *sum, const struct row_run *row)
{
    sum->executed += row->executed;
    sum->replayed += row->replayed;
    sum->failed += row->failed;
    sum->input += row->input;
    sum->output += row->output;
    sum->saved_input += row->saved_input;
    sum->saved_output += row->saved_output;
    sum->priced += row->priced;
    sum->spent += row->spent;
    sum->saved += row->saved;
    sum->last = row->last > sum->last ? row->last : sum->last;
    sum->expires = row->expires > sum->expires ? row->expires : sum->expires;
}

bool tally_add(struct tally *tally, const struct row_run *row)
{
    struct row_run *sum = find(tally, row);
    if (sum != NULL) {
        add_up(sum, row);
        return true;
    }
    if (tally->count == TALLY_MAX)
        return false;
    struct row_run copy = *row;
    struct bytes *texts[] = {&copy.space, &copy.run, &copy.provider, &copy.model};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        *texts[i] = arena_dup(&tally->arena, *texts[i]);
    if (tally->arena.failed)
        return false;
    tally->at[tally->count++] = copy;
    return true;
}

enum status runs_write(struct store *store, const struct tally *tally, int64_t wall_us, struct why *why)
{
    struct q_run_forget forget = {wall_us};
    TRY(store_run(store, &RUN_FORGET, &forget, 1, NULL, NULL, NULL, why));
    return tally->count > 0 ? store_run(store, &RUN_ADD, tally->at, tally->count, NULL, NULL, NULL, why) : OK;
}

size_t runs_money(int64_t pico, char ret[32])
{
    int64_t micro = pico / 1000000 + (pico % 1000000 >= 500000 ? 1 : 0);
    int len = snprintf(ret, 32, "%lld.%06lld", (long long)(micro / 1000000), (long long)(micro % 1000000));
    ASSERT(len > 0 && len < 32);
    while (ret[len - 1] == '0')
        len--;
    if (ret[len - 1] == '.')
        len--;
    ret[len] = '\0';
    return (size_t)len;
}
