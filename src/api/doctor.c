/* doctor: GET /v1/doctor: what is wrong with this house and what to do. A small write first, then a look at everything; whatever
 * does not answer is a finding, not a failure. */
#include "doctor/doctor.h"

#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#include "api/api.h"
#include "base/version.h"
#include "base/when.h"
#include "http/listen.h"

struct doctor_state {
    struct doctor doctor;
    struct doctor_facts facts;
    struct policy *policy; /* a use of it */
};

/* ---- the machine ---- */

static enum doctor_place place_of(long type)
{
    static const struct {
        unsigned type;
        enum doctor_place place;
    } rows[] = {
        {0x01021994, PLACE_MEMORY} /* tmpfs */, {0x858458f6, PLACE_MEMORY} /* ramfs */,  {0x6969, PLACE_NETWORK} /* NFS */,
        {0x517b, PLACE_NETWORK} /* SMB */,      {0xfe534d42, PLACE_NETWORK} /* SMB 2 */, {0xff534d42, PLACE_NETWORK} /* CIFS */,
        {0x01021997, PLACE_NETWORK} /* 9P */,   {0x00c36400, PLACE_NETWORK} /* Ceph */,
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].type == (unsigned)type)
            return rows[i].place;
    return PLACE_DISK;
}

/* Whether the file system that holds `path` was mounted without write barriers. */
static bool is_unordered(const char *path)
{
    struct mntent entry;
    char storage[4096];
    size_t longest = 0;
    bool unordered = false;
    FILE *mounts = setmntent("/proc/self/mounts", "r");
    while (mounts != NULL && getmntent_r(mounts, &entry, storage, sizeof storage) != NULL) {
        size_t len = strlen(entry.mnt_dir);
        bool holds = strncmp(path, entry.mnt_dir, len) == 0 && (len == 1 || path[len] == '/' || path[len] == '\0');
        if (!holds || len < longest)
            continue;
        longest = len;
        unordered = hasmntopt(&entry, "nobarrier") != NULL || strstr(entry.mnt_opts, "barrier=0") != NULL;
    }
    if (mounts != NULL)
        endmntent(mounts);
    return unordered;
}

/* On the reader: a file system that hangs must not keep the loop. */
static void look_at_machine(const char *dir, struct doctor_facts *facts)
{
    struct statvfs space;
    struct statfs kind;
    const char *preload = getenv("LD_PRELOAD");
    facts->no_fsync = preload != NULL && strstr(preload, "eatmydata") != NULL;
    facts->free_bytes = facts->total_bytes = -1;
    if (facts->postgres)
        return;
    if (statvfs(dir, &space) == 0) {
        facts->free_bytes = (int64_t)space.f_bavail * (int64_t)space.f_frsize;
        facts->total_bytes = (int64_t)space.f_blocks * (int64_t)space.f_frsize;
    }
    facts->place = statfs(dir, &kind) == 0 ? place_of((long)kind.f_type) : PLACE_NOT_KNOWN;
    char *path = realpath(dir, NULL);
    facts->unordered = path != NULL && is_unordered(path);
    free(path);
}

/* ---- the look ---- */

static void answer(struct call *call)
{
    struct doctor_state *state = call->state;
    struct doctor *doctor = &state->doctor;
    if (call->read.status != OK)
        doctor_say(doctor, DOCTOR_PROBLEM, "database", "See the log; the checks behind it were not made.",
                   "The database cannot be read: %s.", call->read.why.text);
    doctor_look_at_access(doctor, &state->facts, call->api->access);
    doctor_look_at_delivery(doctor, call->api->act);
    struct json_out out = json_out_to(&call->out);
    json_open(&out, '{');
    json_name(&out, "version");
    json_cstr(&out, SEMEL_VERSION);
    json_name(&out, "storage");
    json_cstr(&out, call->api->storage);
    json_name(&out, "now");
    json_time(&out, engine_env(call->api->engine)->wall_us(engine_env(call->api->engine)));
    doctor_write(doctor, &out);
    json_close(&out, '}');
    policy_free(state->policy);
    call_reply(call, 200);
}

static enum status read_all(struct store *store, struct engine_read *read, struct why *why)
{
    struct call *call = read->user;
    struct doctor_state *state = call->state;
    look_at_machine(call->api->data_dir, &state->facts);
    doctor_look_at_facts(&state->doctor, &state->facts);
    doctor_look_at_policy(&state->doctor, state->policy, call->api->secrets);
    return doctor_look_at_data(&state->doctor, &state->facts, state->policy, store, why);
}

static void finish_write(struct call *call)
{
    struct doctor_state *state = call->state;
    state->facts.written = call->command.status;
    state->facts.written_why = call->command.why;
    call_submit_read(call, read_all, answer);
}

/* When the doctor was last here: the smallest write there is. */
static enum status write_visit(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    char now[32];
    (void)command;
    struct q_meta_put put = {BYTES("doctor"), {now, when_format(ledger->now.wall_us, now)}};
    return store_run(store, &META_PUT, &put, 1, NULL, NULL, NULL, why);
}

void doctor_show(struct call *call)
{
    struct api *api = call->api;
    struct env *env = engine_env(api->engine);
    struct doctor_state *state = arena_zalloc(call->request->arena, 1, sizeof *state);
    int64_t epoch;
    ASSERT(state != NULL);
    if (!admin_keeps_house(call))
        return;
    call->state = state;
    doctor_init(&state->doctor, call->request->arena);
    state->policy = api->policy;
    policy_use(state->policy);
    struct doctor_facts *facts = &state->facts;
    facts->wall_us = env->wall_us(env);
    facts->postgres = engine_is_postgres(api->engine);
    facts->loopback = listen_is_loopback(http_server_address(api->server));
    facts->tls = http_server_is_tls(api->server);
    facts->quarantine = engine_quarantine(api->engine, &epoch, &facts->quarantine_us, &facts->quarantine_why);
    (void)flow_waiting(api->flow, &facts->events_failing);
    call->command = (struct engine_command){.write = write_visit};
    call_submit(call, finish_write);
}
