#include "base/facts.h"

const char *const evidence_names[] = {"S", "D", "I", "2", "M", NULL};

static void note_fact(const struct fact_reader *reader, const char *what, const struct yaml *at, char evidence, bool verified)
{
    if (reader->facts != NULL && reader->facts->count < FACTS_MAX)
        reader->facts->at[reader->facts->count++] = (struct fact){at->line, what, evidence, verified};
}

/* Whether the fact may be relied on. In the policy it is the user's word. */
static bool is_verified(const struct fact_reader *reader, const char *what, const struct yaml *at,
                        const struct setting_value *values)
{
    const struct setting_value *evidence = &values[FACT_EVIDENCE], *verified = &values[FACT_VERIFIED];
    if (reader->place == FACT_POLICY)
        return true;
    if ((!evidence->given && !evidence->refused) || (!verified->given && !verified->refused)) {
        yaml_problem_add(reader->problems, at->line, at->column,
                         "a fact needs its evidence and whether it is verified: add evidence: D, verified: true");
        return false;
    }
    if (!evidence->given || !verified->given)
        return false;
    char letter = evidence_names[evidence->number][0];
    if (letter == 'M' && verified->number != 0)
        yaml_problem_add(reader->problems, verified->line, verified->column,
                         "what is known from memory only is not verified; write verified: false");
    note_fact(reader, what, at, letter, verified->number != 0);
    return letter != 'M' && verified->number != 0;
}

enum status fact_read(const struct fact_reader *reader, const struct setting_table *table, const char *what,
                      const struct yaml *map, struct setting_value *ret_values, bool *ret_verified)
{
    TRY(settings_read(table, map, reader->place, reader->arena, ret_values, reader->problems));
    *ret_verified = is_verified(reader, what, map, ret_values);
    return OK;
}
