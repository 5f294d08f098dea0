/*
 * forms: texts of a special form that several tables of settings want, and their readers.
 */
#ifndef SEMEL_BASE_FORMS_H
#define SEMEL_BASE_FORMS_H

#include "base/settings.h"

#define SIZE_FORM_MAX (64 << 20)

extern const struct setting_form status_form, rate_form, size_form, url_form, secret_form, header_form, line_form;

bool parse_status_range(struct bytes text, int *ret_min, int *ret_max);      /* "200", "2xx", "400-499" */
bool parse_rate(struct bytes text, int64_t *ret_calls, int64_t *ret_per_us); /* "10/s", "100/10s", "60/m" */
bool parse_size(struct bytes text, int64_t *ret_bytes);                      /* "64KiB", "1MiB", "4096" */
bool is_host(struct bytes text);                                             /* a name or an address, perhaps with a port */

#endif
