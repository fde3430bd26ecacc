package durable_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// A change of a row that has no event is not known to a store as one that was carried
// out before. Whoever sends it again after a lost answer hears the truth all the same.
func TestAChangeOfARowWhoseAnswerWasLostIsNotSaidToHaveFailed(t *testing.T) {
	var file bytes.Buffer
	flow := durable.Define("flow", func(ctx context.Context, _ int) (int, error) {
		for _, name := range []string{"a", "b", "c"} {
			if _, err := durable.Step(ctx, name, one); err != nil {
				return 0, err
			}
		}
		return durable.Await[int](ctx, "go")
	})
	inWorld(t, func(t *testing.T, w *world) {
		w.boot(t, with(flow))
		start(t, w, flow, "r", 0)
		w.eventually("r", store.Waiting)
		for _, step := range []string{"b", "a"} { // two branches
			_, err := operate.On(w.eng).Jump(w.ctx(), "r", seqOf(t, w, "r", step), operate.JumpOptions{})
			require.NoError(t, err)
			pass(time.Second)
			w.eventually("r", store.Waiting)
		}
		require.NoError(t, operate.On(w.eng).Export(w.ctx(), "r", &file))
	})
	for n := 1; n <= 6; n++ {
		for how, a := range answers {
			t.Run(fmt.Sprintf("import, write %d %s", n, a.name), func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					w.boot(t, with(flow))
					u := &unsure{n: n, how: how}
					w.disk.tamper(u.commit)
					_, err := operate.On(w.eng).Import(w.ctx(), bytes.NewReader(file.Bytes()), operate.ImportOptions{})
					require.NoError(t, err)
					w.disk.tamper(nil)
					require.Equal(t, durable.CodeImported, w.row("r").Code)
					v, err := operate.On(w.eng).Verify(w.ctx(), "r")
					require.NoError(t, err)
					require.Empty(t, v.Findings)
					require.NoError(t, resume(w.eng, w.ctx(), "r"))
					w.eventually("r", store.Waiting)
					require.NoError(t, durable.Signal(w.ctx(), "r", "go", 42))
					out, err := wait(t, w, flow, "r")
					require.NoError(t, err)
					require.Equal(t, 42, out)
				})
			})
		}
	}
}
