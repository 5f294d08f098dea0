/* version: the one place that says it; see also meson.build and CHANGELOG.md. */
#ifndef SEMEL_BASE_VERSION_H
#define SEMEL_BASE_VERSION_H

#define SEMEL_VERSION "0.1.0"

#endif
