/*
 * fuzz_replay TARGET PATH…: runs every file, or every file of a folder, through one fuzz target, with any compiler and any
 * sanitizer. Without arguments it lists the targets. A broken promise stops it after the name of the file was printed.
 *
 * For the build: one executable made of this file and the file of every target in FUZZ_TARGETS, compiled with -DFUZZ_REPLAY and
 * linked with the library; then one test per target with the arguments TARGET and tests/fuzz/corpus/TARGET. The README has the
 * lines for meson.
 */
#include "fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

enum { PATH_SIZE_MAX = 4096 };

struct target {
    const char *name;
    int (*run)(const uint8_t *data, size_t size);
};

#define TARGET_ROW(name) {#name, fuzz_##name},
static const struct target targets[] = {FUZZ_TARGETS(TARGET_ROW)};
enum { TARGET_COUNT = sizeof targets / sizeof *targets };

static _Noreturn void give_up(const char *path)
{
    fprintf(stderr, "fuzz_replay: %s: %s\n", path, strerror(errno));
    exit(2);
}

static int run_file(const struct target *target, const char *path, long size)
{
    FILE *file = fopen(path, "rb");
    /* Exactly as large as the file, so that a sanitizer sees one byte too many. */
    uint8_t *data = malloc(size > 0 ? (size_t)size : 1);
    if (file == NULL || data == NULL || fread(data, 1, (size_t)size, file) != (size_t)size)
        give_up(path);
    fclose(file);
    printf("%s %s\n", target->name, path);
    fflush(stdout);
    target->run(data, (size_t)size);
    free(data);
    return 1;
}

static int run_path(const struct target *target, const char *path);

static int run_folder(const struct target *target, const char *path)
{
    struct dirent **names;
    int found = scandir(path, &names, NULL, alphasort), ran = 0;
    if (found < 0)
        give_up(path);
    for (int i = 0; i < found; i++) {
        char inner[PATH_SIZE_MAX];
        if (names[i]->d_name[0] != '.') {
            snprintf(inner, sizeof inner, "%s/%s", path, names[i]->d_name);
            ran += run_path(target, inner);
        }
        free(names[i]);
    }
    free(names);
    return ran;
}

static int run_path(const struct target *target, const char *path)
{
    struct stat stat_of;
    if (stat(path, &stat_of) != 0)
        give_up(path);
    return S_ISDIR(stat_of.st_mode) ? run_folder(target, path) : run_file(target, path, (long)stat_of.st_size);
}

static const struct target *find_target(const char *name)
{
    for (size_t i = 0; i < TARGET_COUNT; i++)
        if (strcmp(name, targets[i].name) == 0)
            return &targets[i];
    fprintf(stderr, "fuzz_replay: there is no target %s\n", name);
    exit(2);
}

int main(int argc, char **argv)
{
    int ran = 0;
    if (argc < 3) {
        for (size_t i = 0; i < TARGET_COUNT; i++)
            puts(targets[i].name);
        return argc == 1 ? 0 : 2;
    }
    const struct target *target = find_target(argv[1]);
    for (int i = 2; i < argc; i++)
        ran += run_path(target, argv[i]);
    printf("%d inputs\n", ran);
    return ran > 0 ? 0 : 1;
}
