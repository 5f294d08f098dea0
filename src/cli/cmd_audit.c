#include "audit/audit.h"
#include "cli/commands.h"
#include "cli/print.h"
#include "store/store.h"

const struct cli_option audit_verify_options[] = {
    {"--data", "DIR", CLI_DIR, "Where the data is kept.", "./semel-data", "SEMEL_DATA", NULL, false},
    {"--db", "URL", CLI_TEXT, "The data is in PostgreSQL: postgres://….", NULL, "SEMEL_DB", NULL, false},
    {0},
};

static void print_verified(const struct audit_verified *verified, const char *bad)
{
    struct buf buf;
    buf_init(&buf, 4096);
    struct json_out out = json_out_to(&buf);
    json_open(&out, '{');
    json_name(&out, "ok");
    json_bool(&out, verified->bad_id == 0);
    json_name(&out, "rows");
    json_i64(&out, verified->rows);
    json_name(&out, "lanes");
    json_i64(&out, verified->lanes);
    if (verified->bad_id != 0) {
        json_name(&out, "decision");
        json_cstr(&out, bad);
        json_name(&out, "bad");
        json_cstr(&out, verified->bad);
    }
    json_close(&out, '}');
    print_json_buf(&buf);
    buf_release(&buf);
}

static int report(struct cli *cli, const struct audit_verified *verified)
{
    char bad[32];
    id_format("dec", verified->bad_id, bad);
    if (cli_on(cli, "--json"))
        print_verified(verified, bad);
    else if (verified->bad_id == 0)
        print_line("ok: %lld rows in %lld lanes", (long long)verified->rows, (long long)verified->lanes);
    if (verified->bad_id == 0)
        return CLI_OK;
    return cli_fail(CLI_DATA, "the decision log was changed: %s: %s. Keep a copy of the data before anything else.", bad,
                    verified->bad);
}

static enum status open_store(const struct cli *cli, struct store **ret_store, struct why *why)
{
    int lane;
    const char *url = cli_text(cli, "--db");
    if (url != NULL)
        return store_open_postgres(url, STORE_READ, -1, ret_store, &lane, why);
    return store_open_sqlite(cli_text(cli, "--data"), STORE_READ, ret_store, why);
}

int audit_verify_run(struct cli *cli)
{
    struct store *store = NULL;
    struct audit_verified verified = {0};
    struct why why = {""};
    enum status status = open_store(cli, &store, &why);
    if (status != OK)
        return cli_fail(status == RETRY ? CLI_UNREACHABLE : CLI_DATA, "the data cannot be opened: %s.", why.text);
    status = audit_verify(store, &verified, &why);
    store_close(store);
    return status == OK ? report(cli, &verified) : cli_fail(CLI_INTERNAL, "the decision log cannot be read: %s.", why.text);
}
