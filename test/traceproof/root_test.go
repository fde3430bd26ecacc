package traceproof_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/test/otlptest"
)

// bornDead is a store whose process gets no answer to the commit that starts the
// order: the run is there, and its span is not exported yet.
type bornDead struct{ store.Store }

func (b bornDead) Commit(ctx context.Context, batch []store.Change) []error {
	errs := b.Store.Commit(ctx, batch)
	if slices.ContainsFunc(batch, func(c store.Change) bool { return c.Create != nil && c.RunID == "order-42" }) && errs[0] == nil {
		_ = hang("behind the start")
	}
	return errs
}

func TestAKillBetweenTheStartOfARunAndTheExportOfItsSpanLosesNoRoot(t *testing.T) {
	for _, kept := range []bool{true, false} {
		t.Run(fmt.Sprintf("ids kept: %v", kept), func(t *testing.T) {
			backends(t, func(t *testing.T, o orders, r *otlptest.Receiver) {
				o.KeepIDs, o.BornDead = kept, true
				first := start(t, o)
				first.await(t, "hanging behind the start")
				first.kill(t)
				require.Empty(t, r.Spans(), "it was killed before the export of any span")

				o.BornDead, o.Life = false, 2
				last := start(t, o)
				last.await(t, "ready")
				require.NoError(t, last.Wait())
				if kept {
					requireOneTree(t, r.Spans())
					return
				}
				// One trace all the same, without its root.
				traces := map[string]bool{}
				for _, root := range otlptest.Trees(r.Spans()) {
					if root.Attributes["durable.run.id"] == "order-42" && root.Kind != "producer" {
						require.True(t, root.Lost, root.Name)
						require.Contains(t, []string{"segment order", "end order"}, root.Name)
						traces[root.TraceID] = true
					}
				}
				require.Len(t, traces, 1)
			})
		})
	}
}

// requireOneTree checks that everything of the order hangs below the span of its
// start, which says what it would have said.
func requireOneTree(t *testing.T, spans []otlptest.Span) {
	tree := treeOf(t, spans, "start order")
	require.Equal(t, "producer", tree.Kind)
	require.Equal(t, "order-42", tree.Attributes["durable.run.id"])
	require.Equal(t, "order", tree.Attributes["durable.workflow.name"])
	require.Equal(t, "2", tree.Attributes["durable.workflow.version"])
	require.WithinDuration(t, tree.Begin, tree.End, time.Minute)
	end := one(t, spans, "end order")
	require.Equal(t, tree.ID, end.Parent)
	require.False(t, end.Begin.After(tree.Begin.Add(time.Millisecond)))
	segments := 0
	for _, n := range tree.Children {
		if n.Name == "segment order" {
			segments++
			require.Equal(t, true, n.Attributes["durable.recovered"])
		}
	}
	require.Equal(t, 1, segments, "the first one ended with its process")
}

// A root that has arrived, and is exported again when the run ends in another
// process, is the same span: no second root, and nothing that hangs elsewhere.
func TestARootThatIsExportedAgainIsTheSameSpan(t *testing.T) {
	backends(t, func(t *testing.T, o orders, r *otlptest.Receiver) {
		o.KeepIDs = true
		threeLives(t, o, r)
		var starts []otlptest.Span
		for _, s := range r.Spans() {
			if s.Name == "start order" {
				starts = append(starts, s)
			}
		}
		require.Len(t, starts, 2, "of the first process, and of the last")
		require.Equal(t, starts[0].ID, starts[1].ID)
		require.Equal(t, starts[0].TraceID, starts[1].TraceID)
		require.Equal(t, starts[0].Parent, starts[1].Parent)
		require.Equal(t, starts[0].Attributes, starts[1].Attributes)
	})
}
