package requests_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/test/pgtest"
)

// sqlOf returns the blocks of SQL on a page.
func sqlOf(t *testing.T, page string) (blocks []string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + page)
	require.NoError(t, err)
	for _, m := range regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		blocks = append(blocks, m[1])
	}
	return blocks
}

// part returns what is for one database in a block that has something for each.
func (p place) part(block string) string {
	if !strings.Contains(block, "-- PostgreSQL") {
		return block
	}
	pg, lite, _ := strings.Cut(block, "-- SQLite\n")
	if p.kind == "sqlite" {
		return lite
	}
	return pg
}

// The statements of the guide are those that a reader copies.
func TestTheStatementsOfTheGuideDoWhatItSays(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		blocks := sqlOf(t, "guides/from-sql.md")
		require.Len(t, blocks, 5)
		c := p.program(t)
		p.store(t)
		c.db.SetMaxOpenConns(1) // a transaction over several statements
		c.exec(`CREATE TABLE orders (id text, item text)`)
		c.exec(blocks[0])
		c.exec(p.part(blocks[1]))
		require.Equal(t, 4, c.int(`SELECT count(*) FROM durable_requests`))
		c.exec(`DELETE FROM durable_requests WHERE kind = 'cancel'`)
		c.exec(`UPDATE durable_requests SET workflow = 'ship', name = 'word', input = CASE kind WHEN 'start' THEN '{"item":"lamp","n":1}' ELSE '"go"' END WHERE run_id IS NOT NULL`)
		p.engine(t, options(ship))
		c.until(`SELECT count(*) FROM durable_runs WHERE id = 'order-42' AND status = 'completed'`)
		var status, code, reason, output string
		require.NoError(t, c.db.QueryRow(blocks[2]).Scan(&status, &code, &reason))
		require.Equal(t, "completed", status)
		require.NoError(t, c.db.QueryRow(p.part(blocks[3])).Scan(&output))
		require.Equal(t, `"lamp go"`, output)
		var n int
		var oldest any
		require.NoError(t, c.db.QueryRow(blocks[4]).Scan(&n, &oldest))
		require.Equal(t, 1, n, "one for a workflow that nobody has")
		if p.kind == "postgres" {
			c.exec(`ALTER TABLE durable_requests DISABLE TRIGGER durable_requests_told`)
		}
	})
}

// A program with the rights of the security page may ask, and nothing else.
func TestARoleMayBeGrantedToAskAndNothingElse(t *testing.T) {
	p := place{"postgres", pgtest.DSN(t)} // in SQLite, who can write to the file can write everything
	p.engine(t, options(ship))
	c := p.program(t)
	c.db.SetMaxOpenConns(1)
	for _, block := range sqlOf(t, "security.md") {
		if strings.Contains(block, "durable_requests") {
			c.exec(strings.NewReplacer("CREATE ROLE shop LOGIN;", "DROP ROLE IF EXISTS shop; CREATE ROLE shop LOGIN;", "SCHEMA durable ", "SCHEMA public ", "durable.durable_requests", "public.durable_requests").Replace(block))
		}
	}
	t.Cleanup(func() { c.exec(`RESET ROLE`); c.exec(`DROP OWNED BY shop`); c.exec(`DROP ROLE shop`) })
	c.exec(`SET ROLE shop`)
	outcome := sqlOf(t, "guides/from-sql.md")[2]
	_, err := c.db.Exec(outcome)
	require.ErrorContains(t, err, "permission denied")
	var no int
	require.NoError(t, c.db.QueryRow(`INSERT INTO durable_requests (kind, workflow, run_id) VALUES ('start', 'ship', 'r') RETURNING no`).Scan(&no))
	c.until(`SELECT count(*) FROM durable_requests WHERE no = ? AND done_at IS NOT NULL AND code IS NULL`, no)
	for _, statement := range []string{
		`SELECT * FROM durable_runs`, `UPDATE durable_requests SET run_id = 'x'`, `DELETE FROM durable_requests`, `SELECT input FROM durable_requests`,
		`INSERT INTO durable_requests (kind, workflow, done_at) VALUES ('start', 'ship', 1)`, `UPDATE durable_runs SET status = 'completed'`,
	} {
		_, err := c.db.Exec(statement)
		require.ErrorContains(t, err, "permission denied", statement)
	}
	c.exec(`RESET ROLE`)
	for _, block := range sqlOf(t, "security.md") {
		if strings.Contains(block, "durable_runs") {
			c.exec(strings.ReplaceAll(block, "durable.durable_runs", "public.durable_runs"))
		}
	}
	c.exec(`SET ROLE shop`)
	c.exec(outcome)
	_, err = c.db.Exec(`SELECT * FROM durable_runs`)
	require.ErrorContains(t, err, "permission denied")
}
