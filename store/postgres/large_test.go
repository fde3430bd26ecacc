package postgres_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

// PostgreSQL hangs up on a message of a gigabyte. The limits are smaller here.
func TestABatchOfMoreThanAStatementHoldsIsCarriedOut(t *testing.T) {
	dsn := pgtest.DSN(t)
	s := openOptions(t, dsn, postgres.Options{Limits: store.Limits{Batch: 1 << 20}}.SendsAtMost(5<<19))
	payload := bytes.Repeat([]byte{0xa5}, 600<<10)
	const n = 7
	runs, batch := make([]*runLog, n), make([]store.Change, n)
	for i := range runs {
		runs[i] = &runLog{id: fmt.Sprint("r", i)}
		batch[i] = runs[i].create("me")
	}
	commit(t, s, batch...)
	for i := range runs {
		batch[i] = runs[i].step(payload)
	}
	before := s.Counts().Commits
	commit(t, s, batch...)
	require.EqualValues(t, n, s.Counts().Commits-before, "two would be more than Limits.Batch")
	var all int64
	require.NoError(t, raw(t, dsn).Get(&all, "SELECT sum(length(payload)) FROM durable_events WHERE seq = 2"))
	require.EqualValues(t, n*len(payload), all)
}

// What no statement can hold is refused before it is sent, in every call: whoever
// sends on a connection that the server closes takes the outcome for unknown, and
// sends it again, for ever.
func TestWhatNoStatementCanHoldIsRefusedAndNotSent(t *testing.T) {
	dsn := pgtest.DSN(t)
	s := openOptions(t, dsn, postgres.Options{}.SendsAtMost(1<<20))
	beat(t, s, executor("me", time.Minute))
	large, small := &runLog{id: "large"}, &runLog{id: "small"}
	commit(t, s, large.create("me"), small.create("me"))
	step := large.step(bytes.Repeat([]byte{1}, 1<<20))
	errs := s.Commit(t.Context(), []store.Change{step, small.step(nil)})
	require.ErrorIs(t, errs[0], store.ErrTooLarge)
	require.NoError(t, errs[1])
	require.ErrorIs(t, s.Commit(t.Context(), []store.Change{step})[0], store.ErrTooLarge)
	tx := raw(t, dsn).MustBegin()
	require.ErrorIs(t, s.CommitIn(t.Context(), tx, step), store.ErrTooLarge)
	require.NoError(t, tx.Rollback())
	ids := slices.Repeat([]string{strings.Repeat("x", 1<<10)}, 1<<10)
	_, err := s.Delete(t.Context(), store.Deletion{RunIDs: ids})
	require.ErrorIs(t, err, store.ErrTooLarge)
	_, err = s.Claim(t.Context(), store.Claim{Executor: "me", Serves: serves, Max: 1, IDs: ids})
	require.ErrorIs(t, err, store.ErrTooLarge)
	load(t, s, "small")

	_, err = postgres.OpenOptions(dsn, postgres.Options{Limits: store.Limits{Payload: 512 << 20}})
	require.ErrorIs(t, err, store.ErrInvalid)
}
