/*
 * semel: one program, the daemon and its command line. What it can do is the table in cli/cli.c.
 */
#include "base/hash.h"
#include "cli/cli.h"

int main(int argc, char **argv)
{
    hash_setup();
    return cli_main(argc, argv);
}
