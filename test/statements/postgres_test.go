package statements_test

import (
	"database/sql"
	"database/sql/driver"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/test/pgtest"
	"github.com/holdfast-dev/holdfast/test/tried"
)

func (i *injector) failure(name string, err error, after bool) failure {
	return failure{name, func(at int) { i.arm(at, err, after) }, i.disarm}
}

func (i *injector) failures() (all []failure) {
	for _, state := range []string{"40001", "40P01", "55P03", "57P01", "57014", "53100", "53300", "08006", "25006"} {
		all = append(all, i.failure(state, &pq.Error{Code: pqerror.Code(state), Severity: "ERROR", Message: "injected"}, false))
	}
	return append(all,
		i.failure("lost before", driver.ErrBadConn, false),
		i.failure("lost after", driver.ErrBadConn, true),
		i.failure("40003 after", &pq.Error{Code: "40003", Severity: "ERROR", Message: "injected"}, true))
}

// Whichever statement fails, and however: no caller hears of a failure that was none, nothing
// is lost or doubled, and the run comes to its end.
func TestAnErrorOfAnyClassAtAnyStatement(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	pc, err := pq.NewConnector(dsn)
	require.NoError(t, err)
	in := &injector{Connector: pc}
	db := sqlx.NewDb(sql.OpenDB(in), "postgres")
	t.Cleanup(func() { _ = db.Close() })
	st, err := postgres.New(db, postgres.Options{DSN: dsn})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	failures := in.failures()
	trials, fired := begin(t, st).all(t, failures)
	tried.Say(t, "statements", "store=postgres classes=%d trials=%d failed=%d lost=0 doubled=0", len(failures), trials, fired)
}
