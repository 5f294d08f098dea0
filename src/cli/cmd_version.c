#include <stdio.h>

#include "app.h"
#include "cli/commands.h"
#include "cli/print.h"
#include "store/store.h"

/* `cli` is NULL for `semel --version`. */
int version_run(struct cli *cli)
{
    if (cli == NULL || !cli_on(cli, "--json")) {
        puts("semel " SEMEL_VERSION);
        return CLI_OK;
    }
    struct buf buf;
    buf_init(&buf, 1024);
    struct json_out out = json_out_to(&buf);
    json_open(&out, '{');
    json_name(&out, "version");
    json_cstr(&out, SEMEL_VERSION);
    json_name(&out, "schema");
    json_i64(&out, store_schema_version());
    json_close(&out, '}');
    print_json_buf(&buf);
    buf_release(&buf);
    return CLI_OK;
}
