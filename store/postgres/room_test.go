package postgres_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/test/pgtest"
	"github.com/holdfast-dev/holdfast/test/pgtest/proxy"
)

// A claim may not take more runs than it has room for, of a queue or at all, when the answer to its COMMIT is lost:
// whoever asked for one would execute two.
func TestAClaimWhoseAnswerIsLostTakesNoMoreThanThereIsRoomFor(t *testing.T) {
	onEveryDriver(t, func(t *testing.T, d drive) {
		dsn := pgtest.DSN(t)
		db := raw(t, dsn)
		// The server takes a while for a COMMIT, too long to find out at once what becomes of it, where a run says so.
		db.MustExec(`CREATE FUNCTION slowly() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF new.partition = 'slow' THEN PERFORM pg_sleep(0.2); END IF; RETURN NULL; END $$`)
		s := d.openOptions(t, dsn, postgres.Options{NoPresence: true})
		db.MustExec(`CREATE CONSTRAINT TRIGGER slowly AFTER UPDATE ON durable_runs DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION slowly()`)
		beat(t, s, executor("e", time.Hour))
		for name, c := range map[string]struct {
			queue     store.Queue
			partition string
			most      int
			room      int
		}{
			"room in a queue without limits": {store.Queue{}, "", 5, 1},
			"room in a queue with a limit":   {store.Queue{Max: 100}, "", 5, 1},
			"one of a queue with a limit":    {store.Queue{Max: 100}, "", 1, -1},
			"a slow COMMIT, room in a queue": {store.Queue{Max: 100}, "slow", 5, 1},
			"a slow COMMIT, two of a queue":  {store.Queue{}, "slow", 2, 2},
		} {
			for how, action := range map[string]proxy.Action{"carried out": proxy.CutReply, "under way": proxy.CutBlind, "never sent": proxy.CutBefore} {
				t.Run(name+", "+how, func(t *testing.T) {
					q := c.queue
					q.Name = name + how
					require.NoError(t, s.PutQueue(t.Context(), q))
					const runs = 4
					for i := range runs {
						r := &runLog{id: fmt.Sprint(q.Name, i)}
						change := r.create("")
						change.Create.Queue, change.Create.Partition = q.Name, c.partition
						commit(t, s, change)
					}
					p := proxy.New(t, proxy.Target(dsn))
					var cut sync.Once
					p.SetPolicy(func(r proxy.Request) proxy.Action {
						a := proxy.Pass
						if slices.ContainsFunc(r.SQL, func(sql string) bool { return strings.EqualFold(sql, "COMMIT") }) {
							cut.Do(func() { a = action })
						}
						return a
					})
					h := d.openOptions(t, p.DSN(dsn), postgres.Options{NoPresence: true})
					got := map[string]bool{}
					for began := time.Now(); len(got) < runs; { // a claim may leave a run to the next one
						require.Less(t, time.Since(began), 20*time.Second)
						list, err := h.Claim(t.Context(), store.Claim{
							Executor: "e", Serves: serves, Max: c.most, Queues: []store.QueueRoom{{Queue: q.Name, Max: c.room}},
						})
						require.NoError(t, err)
						require.LessOrEqual(t, len(list), c.most)
						if c.room >= 0 {
							require.LessOrEqual(t, len(list), c.room)
						}
						for i := range list {
							require.False(t, got[list[i].ID], "S19")
							got[list[i].ID] = true
						}
					}
					require.Equal(t, 1, p.Cuts())
				})
			}
		}
	})
}
