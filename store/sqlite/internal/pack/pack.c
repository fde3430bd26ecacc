//go:build cgo

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/*
 * The part of SQLite's C interface that is used here, from its documentation: the driver, which
 * brings the code, does not let another package include its header. SQLite keeps the interface
 * compatible; see https://sqlite.org/capi3ref.html.
 */
typedef struct sqlite3 sqlite3;
typedef struct sqlite3_context sqlite3_context;
typedef struct sqlite3_value sqlite3_value;
extern int sqlite3_auto_extension(void (*entry)(void));
extern int sqlite3_create_function_v2(sqlite3 *, const char *, int, int, void *,
	void (*)(sqlite3_context *, int, sqlite3_value **), void (*)(sqlite3_context *, int, sqlite3_value **),
	void (*)(sqlite3_context *), void (*)(void *));
extern void *sqlite3_aggregate_context(sqlite3_context *, int);
extern void sqlite3_result_blob(sqlite3_context *, const void *, int, void (*)(void *));
extern void sqlite3_result_error_nomem(sqlite3_context *);
extern void sqlite3_result_error_toobig(sqlite3_context *);
extern int64_t sqlite3_value_int64(sqlite3_value *);
extern const void *sqlite3_value_blob(sqlite3_value *);
extern const unsigned char *sqlite3_value_text(sqlite3_value *);
extern int sqlite3_value_bytes(sqlite3_value *);
extern int sqlite3_value_type(sqlite3_value *);

enum { sqlite_integer = 1, sqlite_text = 3, sqlite_null = 5, sqlite_utf8 = 1, sqlite_deterministic = 0x800, sqlite_innocuous = 0x200000 };

/* What was packed so far. The memory is SQLite's, zeroed at first. */
typedef struct {
	char *data;
	size_t len, cap;
	int failed; /* 1: out of memory, 2: too big for a blob */
} packed;

static char *room(packed *p, size_t n) {
	if (p->len + n > p->cap) {
		size_t cap = p->cap ? 2 * p->cap : 16384;
		while (cap < p->len + n)
			cap *= 2;
		if (cap > INT32_MAX) {
			p->failed = 2;
			return NULL;
		}
		char *data = realloc(p->data, cap);
		if (data == NULL) {
			p->failed = 1;
			return NULL;
		}
		p->data = data;
		p->cap = cap;
	}
	char *at = p->data + p->len;
	p->len += n;
	return at;
}

/*
 * A row is a word of 64 bits, in the order of bytes of the machine, for each argument, followed
 * by the bytes of the texts and blobs among them, in order. The word of an integer is its value;
 * of a text or a blob its length; of NULL -1.
 */
static void step(sqlite3_context *ctx, int argc, sqlite3_value **argv) {
	packed *p = sqlite3_aggregate_context(ctx, sizeof *p);
	if (p == NULL || p->failed)
		return;
	size_t words = p->len;
	if (room(p, 8 * (size_t)argc) == NULL)
		return;
	for (int i = 0; i < argc; i++) {
		int64_t word;
		int type = sqlite3_value_type(argv[i]);
		switch (type) {
		case sqlite_integer:
			word = sqlite3_value_int64(argv[i]);
			break;
		case sqlite_null:
			word = -1;
			break;
		default: {
			/* As text it is UTF-8, whatever the encoding of the database is. */
			const void *from = type == sqlite_text ? (const void *)sqlite3_value_text(argv[i]) : sqlite3_value_blob(argv[i]);
			int n = sqlite3_value_bytes(argv[i]);
			word = n;
			if (n > 0) {
				char *to = from == NULL ? NULL : room(p, (size_t)n);
				if (to == NULL) {
					if (!p->failed)
						p->failed = 1;
					return;
				}
				memcpy(to, from, (size_t)n);
			}
		}
		}
		memcpy(p->data + words + 8 * (size_t)i, &word, 8);
	}
}

/* SQLite calls it once for each aggregate that it began, also after an error. */
static void final(sqlite3_context *ctx) {
	packed *p = sqlite3_aggregate_context(ctx, 0);
	if (p == NULL)
		return; /* no row: NULL */
	if (p->failed) {
		free(p->data);
		p->data = NULL;
		if (p->failed == 2)
			sqlite3_result_error_toobig(ctx);
		else
			sqlite3_result_error_nomem(ctx);
		return;
	}
	sqlite3_result_blob(ctx, p->data, (int)p->len, free);
}

static int extend(sqlite3 *db, char **msg, const void *api) {
	(void)msg;
	(void)api;
	return sqlite3_create_function_v2(db, "holdfast_pack", -1, sqlite_utf8 | sqlite_deterministic | sqlite_innocuous, NULL, NULL, step, final, NULL);
}

int holdfast_pack_register(void) { return sqlite3_auto_extension((void (*)(void))extend); }
