package everystore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// Two that import one file at once, as two operators or one with a nervous finger
// do: one of them has imported the run, the other is told that it is there, and it
// is there once, as the file says, branches and all.
func TestOfTwoImportsOfOneFileAtOnceOneWinsOnAnyStore(t *testing.T) {
	onEach(t, func(t *testing.T, b backend, d *data) {
		file, id := fileWithBranches(t, d)
		one, other := d.program(t), d.program(t)
		for round := range 12 {
			name := fmt.Sprint("copy-", round)
			errs := make([]error, 2)
			var both sync.WaitGroup
			for k, p := range []program{one, other} {
				both.Go(func() {
					_, errs[k] = operate.On(p.eng).Import(p, bytes.NewReader(file), operate.ImportOptions{NewID: name})
				})
			}
			both.Wait()
			won := 0
			for _, err := range errs {
				if err == nil {
					won++
					continue
				}
				require.True(t, errors.Is(err, store.ErrExists) || errors.Is(err, store.ErrFenced), "%v", err)
			}
			require.Equal(t, 1, won, "%v", errs)
			v, err := operate.On(one.eng).Verify(one, name)
			require.NoError(t, err)
			require.Empty(t, v.Findings)
			src, err := d.outside.Load(context.Background(), id, store.Cursor{All: true})
			require.NoError(t, err)
			cp, err := d.outside.Load(context.Background(), name, store.Cursor{All: true})
			require.NoError(t, err)
			require.Equal(t, store.Completed, cp.Run.Status)
			require.Equal(t, len(src.Branches), len(cp.Branches))
			require.Equal(t, types(t, src), types(t, cp))
		}
	})
}

// types tells the events of a run.
func types(t *testing.T, h *store.History) (list []string) {
	t.Helper()
	for ev, err := range h.Events {
		require.NoError(t, err)
		list = append(list, fmt.Sprint(ev.Branch, " ", ev.Type, " ", ev.Key))
	}
	return list
}

// fileWithBranches exports a run that takes several writes to import.
func fileWithBranches(t *testing.T, d *data) (file []byte, id string) {
	t.Helper()
	failed := false
	wf := durable.Define("long", func(ctx context.Context, n int) (string, error) {
		for i := range n {
			if _, err := durable.Step(ctx, fmt.Sprint("s", i), func(context.Context) (string, error) { return strings.Repeat("x", 10), nil }); err != nil {
				return "", err
			}
		}
		if !failed {
			failed = true
			return "", errors.New("once")
		}
		return "done", nil
	})
	p := d.program(t, wf)
	run, err := wf.Start(p, "source", 40)
	require.NoError(t, err)
	_, err = run.Wait(p)
	require.Error(t, err)
	at, err := operate.On(p.eng).CheckpointOf(p, "source", "s20")
	require.NoError(t, err)
	_, err = operate.On(p.eng).Resume(p, "source", operate.ResumeOptions{FromCheckpoint: at})
	require.NoError(t, err)
	run, err = wf.Handle(p, "source") // the other has its answer
	require.NoError(t, err)
	_, err = run.Wait(p)
	require.NoError(t, err)
	var buf bytes.Buffer
	require.NoError(t, operate.On(p.eng).Export(p, "source", &buf))
	require.NoError(t, p.eng.Close())
	return buf.Bytes(), "source"
}
