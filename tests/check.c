#include "check.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_SKIPPED = 77, EXIT_FAILED = 1 };

static struct check_test *tests;

void check_register(struct check_test *test)
{
    struct check_test **at = &tests;
    while (*at != NULL && (strcmp((*at)->file, test->file) < 0))
        at = &(*at)->next;
    while (*at != NULL && strcmp((*at)->file, test->file) == 0)
        at = &(*at)->next;
    test->next = *at;
    *at = test;
}

void check_fail(const char *file, int line, const char *format, ...)
{
    va_list args;
    fprintf(stderr, "    %s:%d: ", file, line);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(EXIT_FAILED);
}

void check_skip(const char *reason)
{
    printf("    skipped: %s\n", reason);
    fflush(stdout);
    exit(EXIT_SKIPPED);
}

const char *check_data_dir(void)
{
    const char *dir = getenv("SEMEL_TEST_DATA");
    return dir != NULL && access(dir, R_OK) == 0 ? dir : NULL;
}

struct bytes check_read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        check_fail(path, 0, "cannot be read: %s", strerror(errno));
    size_t len = 0, cap = 1 << 16;
    char *at = malloc(cap + 1);
    for (;;) {
        len += fread(at + len, 1, cap - len, file);
        if (len < cap)
            break;
        cap *= 2;
        at = realloc(at, cap + 1);
    }
    fclose(file);
    at[len] = '\0';
    return (struct bytes){at, len};
}

static int run_one(const struct check_test *test)
{
    char dir[] = "/tmp/semel-unit-XXXXXX";
    if (mkdtemp(dir) == NULL)
        return EXIT_FAILED;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        if (chdir(dir) != 0)
            exit(EXIT_FAILED);
        test->run();
        exit(0);
    }
    int state = 0;
    waitpid(pid, &state, 0);
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", dir);
    if (system(command) != 0)
        fprintf(stderr, "could not remove %s\n", dir);
    if (WIFSIGNALED(state)) {
        fprintf(stderr, "    died of signal %d\n", WTERMSIG(state));
        return EXIT_FAILED;
    }
    return WEXITSTATUS(state);
}

static bool wanted(const struct check_test *test, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strstr(test->name, argv[i]) != NULL || strstr(test->file, argv[i]) != NULL)
            return true;
    return argc <= 1;
}

int main(int argc, char **argv)
{
    int passed = 0, failed = 0, skipped = 0;
    for (const struct check_test *test = tests; test != NULL; test = test->next) {
        if (!wanted(test, argc, argv))
            continue;
        int code = run_one(test);
        const char *word = code == 0 ? "ok" : code == EXIT_SKIPPED ? "skip" : "FAIL";
        printf("%-4s %s\n", word, test->name);
        code == 0 ? passed++ : code == EXIT_SKIPPED ? skipped++ : failed++;
    }
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed > 0 || passed == 0;
}
