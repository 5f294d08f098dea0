/*
 * banned: a compile error instead of a rule. Included by every .c file through the build (-include); the undeclared name
 * in the error message says what to use.
 */
#ifndef SEMEL_BASE_BANNED_H
#define SEMEL_BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#undef strcpy
#define strcpy(...) banned_strcpy_use_bytes_or_buf
#undef strcat
#define strcat(...) banned_strcat_use_buf
#undef strncpy
#define strncpy(...) banned_strncpy_use_memcpy
#undef strncat
#define strncat(...) banned_strncat_use_buf
#undef sprintf
#define sprintf(...) banned_sprintf_use_snprintf_or_buf
#undef vsprintf
#define vsprintf(...) banned_vsprintf_use_vsnprintf
#undef strtok
#define strtok(...) banned_strtok_use_bytes_cut
#undef atoi
#define atoi(...) banned_atoi_use_bytes_to_i64
#undef atol
#define atol(...) banned_atol_use_bytes_to_i64
#undef gets
#define gets(...) banned_gets
#undef time
#define time(...) banned_time_use_env
#undef rand
#define rand(...) banned_rand_use_env
#undef gettimeofday
#define gettimeofday(...) banned_gettimeofday_use_env
#undef localtime
#define localtime(...) banned_localtime_use_when
#undef gmtime
#define gmtime(...) banned_gmtime_use_when
#undef ctime
#define ctime(...) banned_ctime_use_when
#undef asctime
#define asctime(...) banned_asctime_use_when

#endif
