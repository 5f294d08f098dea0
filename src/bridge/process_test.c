#include "bridge/process.h"

#include <unistd.h>

#include "base/when.h"
#include "bridge/lines.h"
#include "check.h"

TEST(a_process_is_replaced_five_times_a_minute)
{
    struct restarts restarts = {0};
    int64_t now_us = 1000 * WHEN_SECOND;
    for (int i = 0; i < 5; i++)
        CHECK(restarts_allow(&restarts, now_us + i));
    CHECK(!restarts_allow(&restarts, now_us + 60 * WHEN_SECOND));
    CHECK(restarts_allow(&restarts, now_us + 60 * WHEN_SECOND + 1));
}

TEST(a_process_that_cannot_be_run_says_so_as_a_shell_does)
{
    char *nothing[] = {"/no/such/program", NULL}, *directory[] = {"/", NULL};
    struct process_order order = {.argv = nothing, .environment = environ};
    struct process process;
    struct why why;
    int code = 0;
    CHECK(process_start(&order, &process, &code, &why) == INVALID);
    CHECK_INT(code, 127);
    order.argv = directory;
    CHECK(process_start(&order, &process, &code, &why) == INVALID);
    CHECK_INT(code, 126);
}

TEST(a_process_has_the_environment_and_directory_that_it_was_given)
{
    char *argv[] = {"/bin/sh", "-c", "read x; echo \"$x $A $PWD ${HOME-none}\"; exit 7", NULL}, *environment[] = {"A=b", NULL};
    const struct process_order order = {.argv = argv, .environment = environment, .directory = "/tmp", .own_group = true};
    struct process process;
    struct lines lines;
    struct bytes line;
    struct why why;
    CHECK(process_start(&order, &process, NULL, &why) == OK);
    CHECK_INT(lines_write(process.in, BYTES("hello")), 6);
    lines_init(&lines, process.out, 100);
    CHECK(lines_next(&lines, -1, &line) == OK);
    CHECK_TEXT(line, "hello b /tmp none");
    CHECK(lines_next(&lines, -1, &line) == NOTHING);
    lines_release(&lines);
    process_close(&process);
    CHECK_INT(process_reap(process.pid), 7);
}

TEST(lines_come_whole_however_they_were_written)
{
    int ends[2];
    struct lines lines;
    struct bytes line;
    CHECK_INT(pipe(ends), 0);
    lines_init(&lines, ends[0], 10);
    CHECK_INT(write(ends[1], "one\ntw", 6), 6);
    CHECK(lines_fill(&lines) == OK);
    CHECK(lines_take(&lines, &line));
    CHECK_TEXT(line, "one");
    CHECK(!lines_take(&lines, &line));
    CHECK_INT(write(ends[1], "o\n\nthree", 8), 8);
    CHECK(lines_fill(&lines) == OK);
    CHECK(lines_take(&lines, &line));
    CHECK_TEXT(line, "two");
    CHECK(lines_take(&lines, &line));
    CHECK_TEXT(line, "");
    CHECK(!lines_take(&lines, &line));
    close(ends[1]);
    CHECK(lines_next(&lines, -1, &line) == OK); /* the last one has no newline */
    CHECK_TEXT(line, "three");
    CHECK(lines_next(&lines, -1, &line) == NOTHING);
    close(ends[0]);
    lines_release(&lines);
}
