#include "doctor/doctor.h"

#include <stdarg.h>
#include <stdio.h>

const char *const doctor_grade_names[] = {"problem", "warning", "ok", NULL};

void doctor_init(struct doctor *doctor, struct arena *arena)
{
    doctor->arena = arena;
    doctor->count = doctor->left_off = 0;
}

void doctor_say(struct doctor *doctor, enum doctor_grade grade, const char *check, const char *fix, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    struct bytes kept = arena_dup(doctor->arena, bytes_of(text));
    struct bytes advice = fix != NULL ? arena_dup(doctor->arena, bytes_of(fix)) : BYTES_NONE;
    if (doctor->count == DOCTOR_FINDINGS_MAX || kept.at == NULL || (fix != NULL && advice.at == NULL)) {
        doctor->left_off++;
        return;
    }
    doctor->findings[doctor->count++] = (struct doctor_finding){grade, check, kept, advice};
}

void doctor_well(struct doctor *doctor, size_t before, const char *check, const char *sentence)
{
    for (size_t i = before; i < doctor->count; i++)
        if (strcmp(doctor->findings[i].check, check) == 0)
            return;
    doctor_say(doctor, DOCTOR_OK, check, NULL, "%s", sentence);
}

size_t doctor_count(const struct doctor *doctor, enum doctor_grade grade)
{
    size_t count = 0;
    for (size_t i = 0; i < doctor->count; i++)
        count += doctor->findings[i].grade == grade;
    return count;
}

/* ---- writing ---- */

static void write_finding(struct json_out *out, const struct doctor_finding *finding)
{
    json_open(out, '{');
    json_name(out, "check");
    json_cstr(out, finding->check);
    json_name(out, "grade");
    json_cstr(out, doctor_grade_names[finding->grade]);
    json_text_member(out, "text", finding->text);
    json_text_member(out, "fix", finding->fix);
    json_close(out, '}');
}

void doctor_write(const struct doctor *doctor, struct json_out *out)
{
    json_name(out, "problems");
    json_i64(out, (int64_t)doctor_count(doctor, DOCTOR_PROBLEM));
    json_name(out, "warnings");
    json_i64(out, (int64_t)doctor_count(doctor, DOCTOR_WARNING));
    json_name(out, "left_off");
    json_i64(out, (int64_t)doctor->left_off);
    json_name(out, "findings");
    json_open(out, '[');
    for (int grade = 0; grade < DOCTOR_GRADE_COUNT; grade++)
        for (size_t i = 0; i < doctor->count; i++)
            if ((int)doctor->findings[i].grade == grade)
                write_finding(out, &doctor->findings[i]);
    json_close(out, ']');
}
