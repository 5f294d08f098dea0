/* The real program with one rule broken, chosen by the environment (SEMEL_MUTANT=NO_WINDOW): what the end-to-end tests would
 * see without it. Only in the target semel_mutant; see base/mutant.h. */
#include "base/mutant.h"

enum mutant mutant_active;

#define MUTANT_NAME(name, rule) #name,
static const char *const names[] = {"NONE", MUTANTS(MUTANT_NAME)};

__attribute__((constructor)) static void choose(void)
{
    const char *wanted = getenv("SEMEL_MUTANT");
    for (int i = 0; wanted != NULL && i < MUTANT_COUNT; i++)
        if (strcmp(names[i], wanted) == 0)
            mutant_active = (enum mutant)i;
}
