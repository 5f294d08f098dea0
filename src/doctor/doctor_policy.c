/* doctor_policy: rules that are allowed but unwise, and secrets that they name and nobody has. */
#include "base/when.h"
#include "doctor/doctor.h"

static const char *rough(int64_t us, char ret[32])
{
    ret[when_format_duration(us, ret)] = '\0';
    return ret;
}

/* Every space may bring its own; the house's is looked at. */
static bool has_secret(struct secrets *secrets, struct bytes reference, struct why *why)
{
    struct secret_text text = {0};
    if (secret_resolve(secrets, BYTES("main"), reference, &text, why) != OK)
        return false;
    secret_text_free(&text);
    return true;
}

/* ---- sources ---- */

static void look_at_source(struct doctor *doctor, const struct source *source, struct secrets *secrets)
{
    struct why why;
    if (source_warning(source, &why))
        doctor_say(doctor, DOCTOR_WARNING, "sources", "Make its window longer, or give its events an id (delivery, key).", "%s.",
                   why.text);
    if ((source->verify_none || source->rule_count == 0) && source->address_count == 0)
        doctor_say(doctor, DOCTOR_WARNING, "sources", "Give it verify: and secret:, as its sender signs.",
                   "Source '%.*s' verifies nothing: whoever can reach /in/%.*s can send as if they were %.*s.",
                   BYTES_ARG(source->name), BYTES_ARG(source->name), BYTES_ARG(source->title));
    for (size_t i = 0; i < source->secret_count; i++)
        if (!has_secret(secrets, source->secrets[i].text, &why))
            doctor_say(doctor, DOCTOR_PROBLEM, "sources",
                       "Set it (semel secret set NAME, the variable, or the file) and, for a variable, start semel again.",
                       "Source '%.*s' has no secret, so what is sent to it is refused: %s.", BYTES_ARG(source->name), why.text);
    if (source->shadow)
        doctor_say(doctor, DOCTOR_WARNING, "sources", "Take mode: shadow out when you trust its verdicts.",
                   "Source '%.*s' is only watched: copies are found and still go on.", BYTES_ARG(source->name));
}

/* ---- destinations ---- */

/* A repetition is only safe while the provider remembers our key: see lease_allowed() in the ledger. */
static void look_at_window(struct doctor *doctor, const struct destination *destination)
{
    int64_t window_us = INT64_MAX;
    char window[32], deadline[32], end[32];
    for (size_t i = 0; i < destination->call_count; i++) {
        const struct call_rules *call = &destination->calls[i];
        if (!call->reads && call->capability == CAPABILITY_IDEMPOTENT && call->window_us > 0 && call->window_us < window_us)
            window_us = call->window_us;
    }
    if (window_us < destination->deadline_us)
        doctor_say(
            doctor, DOCTOR_WARNING, "destinations", "Make its deadline shorter, or its window as long as it truly is.",
            "Destination '%.*s' is to be tried for %s, but remembers our key for %s only: %s after the first send, what may "
            "have happened is not sent again and waits for a person.",
            BYTES_ARG(destination->name), rough(destination->deadline_us, deadline), rough(window_us, window),
            rough(window_us / 3 * 2 / WHEN_SECOND * WHEN_SECOND, end));
}

static void look_at_destination(struct doctor *doctor, const struct destination *destination, struct secrets *secrets)
{
    struct why why;
    if (destination->secret.kind != SECRET_NONE && !has_secret(secrets, destination->secret.text, &why))
        doctor_say(doctor, DOCTOR_PROBLEM, "destinations",
                   "Set it (semel secret set NAME, the variable, or the file) and, for a variable, start semel again.",
                   "Destination '%.*s' cannot be called, its secret is missing: %s.", BYTES_ARG(destination->name), why.text);
    if (!destination->tls_verify)
        doctor_say(doctor, DOCTOR_WARNING, "destinations", "Take tls_verify: false out.",
                   "The certificate of destination '%.*s' is not checked.", BYTES_ARG(destination->name));
    look_at_window(doctor, destination);
}

/* ---- all of it ---- */

void doctor_look_at_policy(struct doctor *doctor, const struct policy *policy, struct secrets *secrets)
{
    size_t before = doctor->count, closed = secrets_without_key(secrets);
    if (policy->owner.len == 0)
        doctor_say(doctor, DOCTOR_WARNING, "policy", "Write owner: NAME into the policy.",
                   "The policy names no owner: what a person must decide goes to \"%s\", and nobody may feel meant.",
                   PEOPLE_DEFAULT.owner);
    if (policy->defaults.mode == MODE_SHADOW)
        doctor_say(doctor, DOCTOR_WARNING, "policy", "Take mode: shadow out when you trust its answers.",
                   "The mode is shadow: semel only watches, and lets every repetition through.");
    for (size_t i = 0; i < policy->source_count; i++)
        look_at_source(doctor, &policy->sources[i], secrets);
    for (size_t i = 0; i < policy->destination_count; i++)
        look_at_destination(doctor, &policy->destinations[i], secrets);
    if (closed > 0)
        doctor_say(doctor, DOCTOR_PROBLEM, "secrets", "Give semel the master key that they were sealed with: --master-key FILE.",
                   "%zu stored secret%s cannot be opened: the master key is missing.", closed, closed == 1 ? "" : "s");
    doctor_well(doctor, before, "policy", "The policy has an owner and is enforced.");
    doctor_well(doctor, before, "sources", "Every source is verified, and its window is long enough.");
    doctor_well(doctor, before, "destinations", "Every destination has its secret, and is not tried for longer than is safe.");
    doctor_well(doctor, before, "secrets", "Every stored secret can be opened.");
}
