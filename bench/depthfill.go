package main

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// copies are the runs like a sample: of each thousand those from from up to to.
type copies struct {
	sample   string // the id
	from, to int
}

// copyRuns makes n runs like the one that the store at address has under an id. set has the
// columns of the run's row that are not those of the sample; see copyMany.
func copyRuns(ctx context.Context, t *target, address, sample string, n int, set map[string]string) error {
	return copyMany(ctx, t, address, []copies{{sample, 0, 1000}}, n, set)
}

// copyMany makes n runs like some that the store at address has, mixed as list says, by SQL in
// the database: millions of them through the store take many minutes. set has the columns of
// the run's row that are not those of the sample, as expressions over i, which goes from 1 to n,
// and t, the sample's row. The sums of the events are still those of the sample.
func copyMany(ctx context.Context, t *target, address string, list []copies, n int, set map[string]string) error {
	db, err := openRaw(t, address)
	if err != nil {
		return err
	}
	defer db.Close()
	isSQLite := t.name == "sqlite"
	columns := `SELECT column_name FROM information_schema.columns
		WHERE table_schema = current_schema() AND table_name = $1 AND is_generated = 'NEVER' ORDER BY ordinal_position`
	series, overriding := fmt.Sprintf("SELECT i FROM pg_catalog.generate_series(CAST(1 AS bigint), %d) AS s (i)", n), "OVERRIDING SYSTEM VALUE"
	if isSQLite {
		columns = `SELECT name FROM pragma_table_info($1)`
		series, overriding = fmt.Sprintf("WITH RECURSIVE s (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < %d) SELECT i FROM s", n), ""
	}
	var last int
	if err := db.QueryRowContext(ctx, "SELECT max(no) FROM durable_runs").Scan(&last); err != nil {
		return err
	}
	again, err := dropIndexes(ctx, db, isSQLite)
	if err != nil {
		return err
	}
	samples, err := sampleTable(ctx, db, list)
	if err != nil {
		return err
	}
	place, events, attributes := map[string]string{"run_no": fmt.Sprintf("%d + i", last)}, "t.run_no = f.no", "t.run_no = f.no"
	if isSQLite {
		place = map[string]string{"place": fmt.Sprintf("((%d + i) << 28) + (t.place & 268435455)", last)}
		events = "t.place > f.no << 28 AND t.place < (f.no + 1) << 28"
	}
	own := map[string]string{"no": fmt.Sprintf("%d + i", last)}
	for column, value := range set {
		own[column] = value
	}
	for _, c := range []struct {
		table, which, overriding string
		set                      map[string]string
	}{
		{"durable_runs", "t.no = f.no", overriding, own},
		{"durable_events", events, "", place},
		{"durable_attributes", attributes, "", map[string]string{"run_no": fmt.Sprintf("%d + i", last)}},
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
		statement := fmt.Sprintf("INSERT INTO %s (%s) %s SELECT %s FROM (%s) AS s JOIN %s AS f ON f.nth = i %% 1000 JOIN %s AS t ON %s ORDER BY i",
			c.table, strings.Join(into, ", "), c.overriding, strings.Join(from, ", "), series, samples, c.table, c.which)
		if isSQLite {
			// It makes the joins in this order.
			statement = fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM (%s) AS s CROSS JOIN %s AS f CROSS JOIN %s AS t WHERE f.nth = i %% 1000 AND %s",
				c.table, strings.Join(into, ", "), strings.Join(from, ", "), series, samples, c.table, c.which)
		}
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("copying %s: %w", c.table, err)
		}
	}
	for _, statement := range append(again, "DROP TABLE "+samples) {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	if isSQLite {
		return nil
	}
	_, err = db.ExecContext(ctx, "SELECT pg_catalog.setval(pg_catalog.pg_get_serial_sequence('durable_runs', 'no'), (SELECT max(no) FROM durable_runs))")
	return err
}

// openRaw opens the database of a store, on one connection.
func openRaw(t *target, address string) (*sql.DB, error) {
	driver, dsn := "postgres", address
	if t.name == "sqlite" {
		driver, dsn = "sqlite3", "file:"+address+"?_synchronous=OFF&_cache_size=-200000&_txlock=immediate&_busy_timeout=10000"
	}
	db, err := sql.Open(driver, dsn)
	if err == nil {
		db.SetMaxOpenConns(1)
	}
	return db, err
}

// dropIndexes drops the indexes of runs, and returns the statements that make them: an index is
// made anew much faster than extended row by row.
func dropIndexes(ctx context.Context, db *sql.DB, isSQLite bool) (again []string, err error) {
	indexes := `SELECT indexname, indexdef FROM pg_catalog.pg_indexes WHERE schemaname = current_schema()
		AND tablename IN ('durable_runs', 'durable_attributes') AND indexname NOT LIKE '%_pkey'`
	if isSQLite {
		indexes = `SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name = 'durable_runs' AND sql IS NOT NULL`
	}
	all, err := db.QueryContext(ctx, indexes)
	if err != nil {
		return nil, err
	}
	defer all.Close()
	var drop []string
	for all.Next() {
		var name, statement string
		if err := all.Scan(&name, &statement); err != nil {
			return nil, err
		}
		drop, again = append(drop, "DROP INDEX "+name), append(again, statement)
	}
	if err := all.Err(); err != nil {
		return nil, err
	}
	for _, statement := range drop {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return nil, err
		}
	}
	return again, nil
}

// sampleTable makes a table of the number of the sample of each run of a thousand.
func sampleTable(ctx context.Context, db *sql.DB, list []copies) (name string, err error) {
	name = "bench_samples"
	if _, err := db.ExecContext(ctx, "CREATE TABLE "+name+" (nth bigint PRIMARY KEY, no bigint)"); err != nil {
		return "", err
	}
	for _, c := range list {
		_, err := db.ExecContext(ctx, `WITH RECURSIVE s (i) AS (SELECT CAST($1 AS bigint) UNION ALL SELECT i + 1 FROM s WHERE i + 1 < $2)
			INSERT INTO `+name+` (nth, no) SELECT i, (SELECT no FROM durable_runs WHERE id = $3) FROM s`, c.from, c.to, c.sample)
		if err != nil {
			return "", err
		}
	}
	return name, nil
}
