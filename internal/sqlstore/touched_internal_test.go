package sqlstore

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatAStepDoesToTablesIsReadOffItsText(t *testing.T) {
	steps := []Migration{
		{Version: 1, SQL: "CREATE TABLE a (x text); create table if not exists b (y text);\nCREATE INDEX a_x ON a (x); CREATE TABLE \"s\".durable_c (z text)"},
		{Version: 2, SQL: "-- UPDATE b SET y = 1\nALTER TABLE ONLY a ADD COLUMN n integer; INSERT INTO a (x) VALUES ('DELETE FROM b') ON CONFLICT (x) DO UPDATE SET n = 1"},
		{Version: 3, SQL: "CREATE TABLE a_new (x text); INSERT OR IGNORE INTO a_new SELECT x FROM a; DROP TABLE a; ALTER TABLE a_new RENAME TO a;"},
		{Version: 4, SQL: "UPDATE \"s\".durable_c SET z = 2; DROP TABLE IF EXISTS b; CREATE INDEX i ON a (x)"},
		{Version: 5, SQL: "CREATE INDEX j ON a (x)"},
	}
	require.Equal(t, []string{"\"s\".durable_c", "a", "b"}, Tables(steps, 1))
	require.Equal(t, []string{"\"s\".durable_c", "a", "b"}, Tables(steps, 3), "a was made anew under its old name")
	require.Equal(t, []string{"\"s\".durable_c", "a"}, Tables(steps, 5))
	require.Equal(t, []string{"\"s\".durable_c", "a"}, Tables(steps, 99))
	require.Empty(t, Tables(steps, 0))

	changes := func(i int) (known []string) {
		for _, n := range steps[i].changed() {
			for _, there := range Tables(steps, i) {
				if n == there {
					known = append(known, n)
				}
			}
		}
		return known
	}
	require.Empty(t, changes(0))
	require.Equal(t, []string{"a"}, changes(1))
	require.Equal(t, []string{"a"}, changes(2))
	require.Equal(t, []string{"\"s\".durable_c", "b"}, changes(3))
	require.Empty(t, changes(4))
	require.Equal(t, "durable_c", Unqualified(`"s".durable_c`))
	require.Equal(t, "a", Unqualified(`a`))
	require.Equal(t, "a", Unqualified(`"odd "".x"."a"`))
}
