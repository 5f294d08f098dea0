#include <stdarg.h>
#include <stdio.h>

#include "base/yaml.h"

static size_t whole_characters(const char *text, size_t len)
{
    struct bytes shown = {text, len};
    while (shown.len > 0 && !bytes_is_utf8(shown))
        shown.len--;
    return shown.len;
}

struct bytes yaml_clip(struct bytes text)
{
    enum { CLIP = 40 };
    if (text.len > CLIP)
        text.len = whole_characters(text.at, CLIP);
    return text;
}

/* A document may quote anything, but a sentence goes to terminals: no control characters, no half character at the cut. */
static void make_printable(char *text)
{
    size_t len = whole_characters(text, strlen(text));
    text[len] = '\0';
    for (size_t i = 0; i < len; i++) {
        unsigned char byte = (unsigned char)text[i];
        if (byte < 0x20 || byte == 0x7F)
            text[i] = '?';
        else if (byte == 0xC2 && (unsigned char)text[i + 1] < 0xA0)
            text[i] = text[i + 1] = '?';
    }
}

static bool comes_before(const struct yaml_problem *problem, size_t line, size_t column)
{
    return problem->line < line || (problem->line == line && problem->column <= column);
}

bool yaml_problem_would_drop(const struct yaml_problems *problems, size_t line, size_t column)
{
    return problems->count == YAML_PROBLEMS_MAX && comes_before(&problems->at[YAML_PROBLEMS_MAX - 1], line, column);
}

void yaml_problem_add(struct yaml_problems *problems, size_t line, size_t column, const char *format, ...)
{
    if (yaml_problem_would_drop(problems, line, column))
        return;
    if (problems->count < YAML_PROBLEMS_MAX)
        problems->count++;
    size_t at = problems->count - 1;
    for (; at > 0 && !comes_before(&problems->at[at - 1], line, column); at--)
        problems->at[at] = problems->at[at - 1];

    struct yaml_problem *problem = &problems->at[at];
    problem->line = line;
    problem->column = column;
    va_list args;
    va_start(args, format);
    vsnprintf(problem->text, sizeof problem->text, format, args);
    va_end(args);
    make_printable(problem->text);
}
