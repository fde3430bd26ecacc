package main

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// copyRuns makes n runs like the one that the store at address has under an id, by SQL in the
// database: millions of them through the store take many minutes. set has the columns of the
// run's row that are not those of the sample, as expressions over i, which goes from 1 to n. The
// sums of the events are still those of the sample; what is measured here does not look at them.
func copyRuns(ctx context.Context, t *target, address, sample string, n int, set map[string]string) error {
	driver, dsn := "postgres", address
	columns := `SELECT column_name FROM information_schema.columns
		WHERE table_schema = current_schema() AND table_name = $1 AND is_generated = 'NEVER' ORDER BY ordinal_position`
	series, overriding := fmt.Sprintf("pg_catalog.generate_series(1, %d) AS s (i)", n), "OVERRIDING SYSTEM VALUE"
	place, place1 := "run_no", "%d + i"
	if t.name == "sqlite" {
		driver, dsn = "sqlite3", "file:"+address+"?_synchronous=OFF&_cache_size=-200000"
		columns = `SELECT name FROM pragma_table_info($1)`
		series, overriding = fmt.Sprintf("(WITH RECURSIVE s (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < %d) SELECT i FROM s) AS s", n), ""
		place, place1 = "place", "((%d + i) << 28) + 1"
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	var last, no int
	if err := db.QueryRowContext(ctx, "SELECT max(no), max(CASE WHEN id = $1 THEN no END) FROM durable_runs", sample).Scan(&last, &no); err != nil {
		return err
	}
	// Indexes are much faster to make anew than to extend row by row.
	indexes, drop := `SELECT indexname, indexdef FROM pg_catalog.pg_indexes WHERE schemaname = current_schema() AND tablename = 'durable_runs' AND indexname NOT LIKE '%_pkey'`, "DROP INDEX "
	if t.name == "sqlite" {
		indexes = `SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name = 'durable_runs' AND sql IS NOT NULL`
	}
	all, err := db.QueryContext(ctx, indexes)
	if err != nil {
		return err
	}
	defer all.Close()
	var makeAgain []string
	for all.Next() {
		var name, statement string
		if err := all.Scan(&name, &statement); err != nil {
			return err
		}
		drop, makeAgain = drop+name, append(makeAgain, statement)
		if t.name == "sqlite" {
			drop += "; DROP INDEX "
		} else {
			drop += ", "
		}
	}
	if err := all.Err(); err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, strings.TrimSuffix(strings.TrimSuffix(drop, ", "), "; DROP INDEX ")); err != nil {
		return err
	}
	own := map[string]string{"no": fmt.Sprintf("%d + i", last)}
	for column, value := range set {
		own[column] = value
	}
	which := "run_no = $1"
	if t.name == "sqlite" {
		which = "place = ($1 << 28) + 1"
	}
	for _, c := range []struct {
		table, which string
		set          map[string]string
	}{
		{"durable_runs", "no = $1", own},
		{"durable_events", which, map[string]string{place: fmt.Sprintf(place1, last)}},
	} {
		var into, from []string
		rows, err := db.QueryContext(ctx, columns, c.table)
		if err != nil {
			return err
		}
		for rows.Next() {
			var name string
			if err := rows.Scan(&name); err != nil {
				return err
			}
			value, ok := c.set[name]
			if !ok {
				value = "t." + name
			}
			into, from = append(into, name), append(from, value)
		}
		if err := rows.Err(); err != nil {
			return err
		}
		statement := fmt.Sprintf("INSERT INTO %s (%s) %s SELECT %s FROM %s CROSS JOIN %s AS t WHERE t.%s",
			c.table, strings.Join(into, ", "), overriding, strings.Join(from, ", "), series, c.table, c.which)
		if c.table == "durable_events" {
			statement = strings.Replace(statement, overriding, "", 1)
		}
		if _, err := db.ExecContext(ctx, statement, no); err != nil {
			return fmt.Errorf("copying %s: %w", c.table, err)
		}
	}
	for _, statement := range makeAgain {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	if t.name == "sqlite" {
		return nil
	}
	_, err = db.ExecContext(ctx, "SELECT pg_catalog.setval(pg_catalog.pg_get_serial_sequence('durable_runs', 'no'), (SELECT max(no) FROM durable_runs))")
	return err
}
