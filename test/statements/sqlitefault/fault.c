//go:build linux && cgo

#include <stdio.h>
#include <strings.h>

/*
 * The part of SQLite's C interface that is used here, from its documentation: the driver, which
 * brings the code, does not let another package include its header.
 */
typedef struct sqlite3 sqlite3;
typedef struct sqlite3_stmt sqlite3_stmt;
extern int sqlite3_set_errmsg(sqlite3 *, int, const char *);
extern int sqlite3_get_autocommit(sqlite3 *);
extern sqlite3 *sqlite3_db_handle(sqlite3_stmt *);
extern const char *sqlite3_sql(sqlite3_stmt *);
extern int sqlite3_stmt_readonly(sqlite3_stmt *);

/* What the linker makes of the functions that it wraps. */
extern int __real_sqlite3_open_v2(const char *, sqlite3 **, int, const char *);
extern int __real_sqlite3_exec(sqlite3 *, const char *, int (*)(void *, int, char **, char **), void *, char **);
extern int __real_sqlite3_prepare_v2(sqlite3 *, const char *, int, sqlite3_stmt **, const char **);
extern int __real_sqlite3_step(sqlite3_stmt *);
extern int __real_sqlite3_reset(sqlite3_stmt *);
extern int __real_sqlite3_finalize(sqlite3_stmt *);

enum { ok = 0, row = 100, done = 101 };
enum { refused, rolled_back, committed };

/* The call that fails. Written by one goroutine between calls, read by all. */
static int at, code, how, calls, fired;
static char what[240];       /* it was; valid once it has fired */
static sqlite3_stmt *failed; /* the statement that has failed, until it is reset or gone */

#define LOAD(x) __atomic_load_n(&(x), __ATOMIC_SEQ_CST)
#define STORE(x, v) __atomic_store_n(&(x), (v), __ATOMIC_SEQ_CST)

void holdfast_fault_arm(int n, int with, int way) {
	STORE(at, 0);
	STORE(code, with);
	STORE(how, way);
	STORE(calls, 0);
	STORE(fired, 0);
	STORE(failed, NULL);
	STORE(at, n);
}

int holdfast_fault_disarm(void) {
	STORE(at, 0);
	return LOAD(fired);
}

const char *holdfast_fault_what(void) { return what; }

/* hit counts a call, and reports whether it is the one. */
static int hit(const char *call, const char *sql) {
	int n = LOAD(at);
	if (n == 0 || __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST) != n)
		return 0;
	snprintf(what, sizeof what, "%s of %s", call, sql);
	STORE(fired, 1);
	return 1;
}

static int fail(sqlite3 *db) {
	sqlite3_set_errmsg(db, LOAD(code), "injected");
	return LOAD(code);
}

static int refuse(sqlite3 *db) {
	if (LOAD(how) == rolled_back && !sqlite3_get_autocommit(db))
		__real_sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
	return fail(db);
}

int __wrap_sqlite3_open_v2(const char *file, sqlite3 **db, int flags, const char *vfs) {
	int rc = __real_sqlite3_open_v2(file, db, flags, vfs);
	if (rc == ok && LOAD(how) != committed && hit("open", file))
		return fail(*db);
	return rc;
}

int __wrap_sqlite3_exec(sqlite3 *db, const char *sql, int (*f)(void *, int, char **, char **), void *arg, char **msg) {
	if (LOAD(how) != committed && hit("exec", sql))
		return refuse(db);
	return __real_sqlite3_exec(db, sql, f, arg, msg);
}

int __wrap_sqlite3_prepare_v2(sqlite3 *db, const char *sql, int n, sqlite3_stmt **s, const char **tail) {
	if (LOAD(how) != committed && hit("prepare", sql)) {
		*s = NULL;
		return refuse(db);
	}
	return __real_sqlite3_prepare_v2(db, sql, n, s, tail);
}

/*
 * commits reports whether s ends a transaction by a commit: one that was begun, or its own. To
 * SQLite BEGIN IMMEDIATE writes.
 */
static int commits(sqlite3_stmt *s) {
	if (sqlite3_get_autocommit(sqlite3_db_handle(s)))
		return !sqlite3_stmt_readonly(s) && strncasecmp(sqlite3_sql(s), "BEGIN", 5) != 0;
	return strncasecmp(sqlite3_sql(s), "COMMIT", 6) == 0;
}

int __wrap_sqlite3_step(sqlite3_stmt *s) {
	sqlite3 *db = sqlite3_db_handle(s);
	if (LOAD(how) == committed) {
		int counts = commits(s);
		int rc = __real_sqlite3_step(s);
		if (!counts || rc != done || !hit("step", sqlite3_sql(s)))
			return rc;
		STORE(failed, s);
		__real_sqlite3_reset(s);
		return fail(db);
	}
	if (!hit("step", sqlite3_sql(s)))
		return __real_sqlite3_step(s);
	STORE(failed, s);
	__real_sqlite3_reset(s); /* of which rows were read before: it ends here */
	return refuse(db);
}

/* As SQLite does, the reset of a statement that has failed returns why once more, and so does its end. */
static int again(sqlite3_stmt *s, int (*end)(sqlite3_stmt *)) {
	if (s == NULL || LOAD(failed) != s)
		return end(s);
	STORE(failed, NULL);
	sqlite3 *db = sqlite3_db_handle(s);
	end(s);
	return fail(db);
}

int __wrap_sqlite3_reset(sqlite3_stmt *s) { return again(s, __real_sqlite3_reset); }
int __wrap_sqlite3_finalize(sqlite3_stmt *s) { return again(s, __real_sqlite3_finalize); }
