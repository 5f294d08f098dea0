/*
 * wal_gather: a thin file layer for SQLite's write-ahead log. SQLite writes a log frame in two small pieces, and one commit has many frames; here they
 * are gathered and written in few large pieces right before the sync that makes them durable. New log space is filled with zeros ahead, so that most
 * syncs overwrite and do not have to grow the file. Both only change how, never when: nothing is promised before xSync, and xSync writes everything first.
 *
 * Valid only with synchronous=FULL, where SQLite syncs before it publishes a commit to readers.
 */
#ifndef SEMEL_STORE_WAL_GATHER_H
#define SEMEL_STORE_WAL_GATHER_H

/* The name of such a layer over the file layer `base` (NULL for the system's), registered on first use. From one thread at a time. */
const char *wal_gather_over(const char *base);

#endif
