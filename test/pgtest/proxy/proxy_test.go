package proxy_test

import (
	"context"
	"database/sql"
	"slices"
	"testing"

	_ "github.com/lib/pq"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/test/pgtest"
	"github.com/holdfast-dev/holdfast/test/pgtest/proxy"
)

func TestTheProxyCutsWhereItIsTold(t *testing.T) {
	dsn := pgtest.DSN(t)
	direct, err := sql.Open("postgres", dsn)
	require.NoError(t, err)
	defer direct.Close()
	_, err = direct.Exec("CREATE TABLE t (n int)")
	require.NoError(t, err)

	const insert = "INSERT INTO t VALUES ($1)"
	cases := []struct {
		name   string
		action proxy.Action
		want   int // rows afterwards
	}{
		{"pass", proxy.Pass, 1},
		{"before the server sees it", proxy.CutBefore, 1},
		{"after the server has done it", proxy.CutReply, 2},
		{"later", proxy.CutLate, 2},
	}
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := proxy.New(t, proxy.Target(dsn))
			db, err := sql.Open("postgres", p.DSN(dsn))
			require.NoError(t, err)
			defer db.Close()
			conn, err := db.Conn(context.Background())
			require.NoError(t, err)
			defer conn.Close()
			stmt, err := conn.PrepareContext(context.Background(), insert)
			require.NoError(t, err)
			p.SetPolicy(func(r proxy.Request) proxy.Action {
				if r.Executes && slices.Contains(r.SQL, insert) {
					return c.action
				}
				return proxy.Pass
			})
			_, err = stmt.Exec(i)
			require.Equal(t, c.action != proxy.Pass, err != nil, "%v", err)
			var n int
			require.NoError(t, direct.QueryRow("SELECT count(*) FROM t").Scan(&n))
			require.Equal(t, c.want, n)
			require.Equal(t, c.action != proxy.Pass, p.Cuts() == 1)
			p.Deliver()
			require.NoError(t, direct.QueryRow("SELECT count(*) FROM t").Scan(&n))
			require.Equal(t, c.action == proxy.CutLate, n > c.want)
		})
	}
}
