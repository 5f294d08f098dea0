/* doctor_facts: what the process knows of itself and of its machine. Pure. */
#include "base/when.h"
#include "doctor/doctor.h"

#define FREE_LOW ((int64_t)1 << 30)
#define FREE_TOO_LOW ((int64_t)256 << 20)
#define CLOCK_FLOOR_US (INT64_C(1767225600) * WHEN_SECOND) /* 2026: nothing of this was written before */

static void look_at_writing(struct doctor *doctor, const struct doctor_facts *facts)
{
    size_t before = doctor->count;
    if (facts->written != OK)
        doctor_say(doctor, DOCTOR_PROBLEM, "database",
                   facts->postgres ? "Check the server, its disk and the network to it; semel connects again by itself."
                                   : "Check the disk: is it full, read-only or gone? semel goes on by itself when it can write.",
                   "The database cannot be written: %s.", facts->written_why.text);
    doctor_well(doctor, before, "database", "The database answers, and a small write was committed.");
}

/* Whether a commit survives a power cut, as far as it can be seen from here. */
static void look_at_durability(struct doctor *doctor, const struct doctor_facts *facts)
{
    size_t before = doctor->count;
    if (facts->no_fsync)
        doctor_say(doctor, DOCTOR_PROBLEM, "durability", "Start semel without libeatmydata in LD_PRELOAD.",
                   "A library that makes fsync do nothing is loaded: what was acknowledged is lost with the power.");
    if (facts->postgres)
        return; /* the server is asked: see doctor_data.c */
    if (facts->place == PLACE_MEMORY)
        doctor_say(doctor, DOCTOR_PROBLEM, "durability", "Put --data on a disk.",
                   "The data directory is in memory: all of it is lost when this computer stops.");
    if (facts->place == PLACE_NETWORK)
        doctor_say(doctor, DOCTOR_WARNING, "durability", "Put --data on a local disk, or use --db with PostgreSQL.",
                   "The data directory is on a network file system, whose locks and fsync are not to be trusted.");
    if (facts->unordered)
        doctor_say(doctor, DOCTOR_PROBLEM, "durability", "Mount it without nobarrier or barrier=0.",
                   "The file system of the data directory is mounted without write barriers: fsync may lie.");
    if (facts->place == PLACE_NOT_KNOWN)
        doctor_say(doctor, DOCTOR_WARNING, "durability", NULL, "The file system of the data directory could not be looked at.");
    doctor_well(doctor, before, "durability",
                "Each commit waits for the disk, which is a local one. Whether the disk itself tells the truth cannot be seen.");
}

static void look_at_disk(struct doctor *doctor, const struct doctor_facts *facts)
{
    long long free_mib = (long long)(facts->free_bytes >> 20), total_mib = (long long)(facts->total_bytes >> 20);
    if (facts->postgres)
        return; /* the server's disk cannot be seen */
    if (facts->free_bytes < 0)
        doctor_say(doctor, DOCTOR_WARNING, "disk", NULL, "The space on the disk could not be looked at.");
    else if (facts->free_bytes < FREE_LOW)
        doctor_say(doctor, facts->free_bytes < FREE_TOO_LOW ? DOCTOR_PROBLEM : DOCTOR_WARNING, "disk",
                   "Make room, or give it a larger disk. When it is full, new claims are refused and accepted work is finished.",
                   "Only %lld MiB of %lld are free where the data is.", free_mib, total_mib);
    else
        doctor_say(doctor, DOCTOR_OK, "disk", NULL, "%lld MiB of %lld are free where the data is.", free_mib, total_mib);
}

static void look_at_quarantine(struct doctor *doctor, const struct doctor_facts *facts)
{
    char since[32];
    if (!facts->quarantine) {
        doctor_say(doctor, DOCTOR_OK, "quarantine", NULL, "There is no quarantine: nothing acknowledged is missing.");
        return;
    }
    when_format(facts->quarantine_us, since);
    doctor_say(doctor, DOCTOR_PROBLEM, "quarantine",
               "Look at what may have been done: semel intents --state unknown. Then: semel quarantine lift --reason TEXT",
               "There is a quarantine since %s: %s.", since, facts->quarantine_why.text);
}

void doctor_look_at_facts(struct doctor *doctor, const struct doctor_facts *facts)
{
    char now[32];
    look_at_writing(doctor, facts);
    look_at_durability(doctor, facts);
    look_at_disk(doctor, facts);
    look_at_quarantine(doctor, facts);
    if (facts->wall_us < CLOCK_FLOOR_US) {
        when_format(facts->wall_us, now);
        doctor_say(doctor, DOCTOR_PROBLEM, "clock", "Set the clock, and keep it right with NTP.",
                   "The clock of this computer says %s, which is long past.", now);
    }
    if (facts->events_failing)
        doctor_say(doctor, DOCTOR_PROBLEM, "events", "See the log for the reason.",
                   "The last try to decide events could not be written; they are kept and tried again.");
}

/* ---- who may come in ---- */

static void look_at_tokens(struct doctor *doctor, const struct access *access)
{
    size_t endless = 0;
    struct bytes name = BYTES_NONE;
    for (size_t i = 0; access != NULL && i < access->count; i++) {
        const struct row_token *token = &access->tokens[i];
        if (token->revoked != 0 || token->expires != 0)
            continue;
        name = endless++ == 0 ? token->name : name;
    }
    if (endless > 0)
        doctor_say(doctor, DOCTOR_WARNING, "access", "Make one that ends (semel token create --expires 365d), then revoke it.",
                   "%zu token%s never expire%s, such as \"%.*s\", and others can reach this listener.", endless,
                   endless == 1 ? "" : "s", endless == 1 ? "s" : "", BYTES_ARG(name));
}

void doctor_look_at_access(struct doctor *doctor, const struct doctor_facts *facts, const struct access *access)
{
    size_t before = doctor->count;
    if (!facts->loopback) {
        look_at_tokens(doctor, access);
        if (!facts->tls)
            doctor_say(doctor, DOCTOR_WARNING, "access", "Give --tls-cert and --tls-key, or listen on unix:/PATH behind a proxy.",
                       "Others can reach this listener, and tokens travel to it in clear text.");
    }
    doctor_well(doctor, before, "access",
                facts->loopback ? "Only this computer can reach the listener." : "Tokens expire, and travel encrypted.");
}
