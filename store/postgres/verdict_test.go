package postgres_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

// S3: whatever else is wrong with a Change whose place in the log is another's.
func TestAFencedChangeIsSaidToBeFencedWhateverElseIsWrong(t *testing.T) {
	dsn := pgtest.DSN(t)
	s := open(t, dsn)
	beat(t, s, executor("me", time.Minute))
	r, holder, ended := &runLog{id: "r"}, &runLog{id: "holder"}, &runLog{id: "ended"}
	hold := holder.create("")
	hold.Hold = []string{"desk"}
	commit(t, s, r.create("me"), hold, ended.create("me"))
	asks := r.step(nil)
	asks.Send = []store.Message{{To: "r", Kind: store.KindCancel, ID: "c"}}
	commit(t, s, asks, ended.complete())
	commit(t, s, r.step(nil))
	other, waiting := (&runLog{id: "holder", epoch: 7}).create(""), store.Waiting
	other.Create.Workflow = "another"
	for name, wrong := range map[string]func(*store.Change){
		"status":           func(c *store.Change) { c.Expect.Statuses = []store.Status{waiting} },
		"status to follow": func(c *store.Change) { pending := store.Pending; c.Row = &store.RowPatch{Status: &pending} },
		"cancel":           func(c *store.Change) { c.Expect.NoCancel = true },
		"occupied":         func(c *store.Change) { c.Hold = []string{"desk"} },
		"live owner":       func(c *store.Change) { c.Expect.TakeEpoch = true },
		"receiver is none": func(c *store.Change) { c.Send = []store.Message{{To: "nobody", Kind: store.KindSignal, ID: "x"}} },
		"receiver has ended": func(c *store.Change) {
			c.Send = []store.Message{{To: "ended", Kind: store.KindSignal, ID: "x"}}
		},
		"child is another": func(c *store.Change) { c.Start = []store.Change{other} },
		"nothing":          func(*store.Change) {},
	} {
		for place, seq := range map[string]int64{"taken": r.seq, "behind a gap": r.seq + 2} {
			at := runLog{id: "r", epoch: r.epoch, seq: seq - 1}
			c := at.step([]byte("another"))
			wrong(&c)
			require.ErrorIs(t, s.Commit(t.Context(), []store.Change{c})[0], store.ErrFenced, "%s, place %s", name, place)
			tx := raw(t, dsn).MustBegin()
			require.ErrorIs(t, s.CommitIn(t.Context(), tx, c), store.ErrFenced, "%s, place %s, in a transaction", name, place)
			require.NoError(t, tx.Rollback())
		}
	}
}

func TestABranchThatIsThereAlreadyIsInvalid(t *testing.T) {
	s := fresh(t)
	r := &runLog{id: "r"}
	commit(t, s, r.create("me"))
	one := r.step(nil)
	one.Branch = &store.Branch{N: 1, Cutoff: 1}
	commit(t, s, one)
	again := runLog{id: "r", epoch: r.epoch, seq: r.seq, sum: r.sum}
	c := again.step(nil)
	c.Branch = &store.Branch{N: 1, Cutoff: 2}
	require.ErrorIs(t, s.Commit(t.Context(), []store.Change{c})[0], store.ErrInvalid)
	commit(t, s, r.step(nil))
	commit(t, s, one) // which was done
}

// In a transaction of the user's, too, what was carried out is done (S6), and
// the transaction can go on.
func TestAChangeThatWasCarriedOutIsDoneInATransactionOfTheUsers(t *testing.T) {
	onEveryDriver(t, func(t *testing.T, d drive) {
		dsn := pgtest.DSN(t)
		s := d.open(t, dsn)
		db := raw(t, dsn)
		db.MustExec("CREATE TABLE mine (n int)")
		r, to := &runLog{id: "r"}, &runLog{id: "to"}
		priority := int32(3)
		for name, make := range map[string]func() store.Change{
			"create":  func() store.Change { return r.create("me") },
			"a step":  func() store.Change { return r.step(nil) },
			"a patch": func() store.Change { c := r.step(nil); c.Row = &store.RowPatch{Priority: &priority}; return c },
			"a message": func() store.Change {
				c := r.step(nil)
				c.Send = []store.Message{{To: "to", Kind: store.KindSignal, ID: "m", Name: "n"}}
				return c
			},
			"keys":   func() store.Change { c := r.step(nil); c.Hold = []string{"desk"}; return c },
			"an end": func() store.Change { return r.complete() },
		} {
			_, err := s.Delete(t.Context(), store.Deletion{RunIDs: []string{"r", "to"}, Force: true})
			require.NoError(t, err)
			r, to = &runLog{id: "r"}, &runLog{id: "to"}
			commit(t, s, to.create(""))
			if name != "create" {
				commit(t, s, r.create("me"))
			}
			c := make()
			in := func() {
				tx := db.MustBegin()
				tx.MustExec("INSERT INTO mine VALUES (1)")
				require.NoError(t, s.CommitIn(t.Context(), tx, c), name)
				require.NoError(t, tx.Commit())
			}
			in()
			h, events := load(t, s, "r")
			in()
			commit(t, s, c)
			again, eventsAgain := load(t, s, "r")
			h.Events, again.Events = nil, nil
			require.Equal(t, h, again, name)
			require.Equal(t, events, eventsAgain, name)
		}
		var n int
		require.NoError(t, db.Get(&n, "SELECT count(*) FROM mine"))
		require.Equal(t, 12, n)
	})
}

// Who listens on the handle that took the Change hears of it when the user has
// committed.
func TestTheOwnHandleHearsOfATransactionOfTheUsers(t *testing.T) {
	dsn := pgtest.DSN(t)
	s := open(t, dsn)
	ear := listen(t, s)
	r := &runLog{id: "r"}
	tx := raw(t, dsn).MustBegin()
	require.NoError(t, s.CommitIn(t.Context(), tx, r.create("")))
	require.NoError(t, tx.Commit())
	ear.hears(t, "r")
}
