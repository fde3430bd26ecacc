package durable_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// An id that the workflow has chosen may begin like one that is derived from the call. It is
// used again like any other.
func TestAChildWhoseChosenIDBeginsLikeADerivedOneIsHeardWhenTheIDIsUsedAgain(t *testing.T) {
	generation := func(t *testing.T, w *world) {
		require.NoError(t, durable.Signal(w.ctx(), "p", "next", "continue"))
	}
	cut := func(t *testing.T, w *world) {
		_, err := operate.On(w.eng).Jump(w.ctx(), "p", seqOf(t, w, "p", "before"), operate.JumpOptions{})
		require.NoError(t, err)
	}
	for name, c := range map[string]struct {
		id    string
		again func(t *testing.T, w *world)
	}{
		"its beginning, in a later generation":  {"p/kid-1", generation},
		"its beginning, after a cut":            {"p/kid-1", cut},
		"all of it, in a later generation":      {"p/kid", generation},
		"another branch, in a later generation": {"p/kid~bx", generation},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				lives := 0
				parent, kid := againAndAgain(c.id, &lives)
				w.boot(t, with(parent, kid))
				start(t, w, parent, "p", 0)
				w.eventually(c.id, store.Completed)
				w.eventually("p", store.Waiting)
				_, err := w.data.Delete(context.Background(), store.Deletion{RunIDs: []string{c.id}})
				require.NoError(t, err)
				c.again(t, w)
				pass(time.Minute)
				require.Equal(t, 2, lives)
				require.Contains(t, strings.Join(tell(t, w.eng.History(w.ctx(), "p")), "\n"), "child_finished", "it is not loaded anew")
				require.NoError(t, durable.Signal(w.ctx(), "p", "next", "end"))
				pass(time.Minute)
				require.Equal(t, store.Completed, w.row("p").Status)
				checkVerified(t, w.data)
			})
		})
	}
}
