package everystore_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// C2 on every store: the process died within a Map whose first item is done and
// whose second has done one of its two steps. It is no inconsistency, and nothing
// is written; what is finished inside is not run again.
func TestACompositeThatWasInterruptedGoesOnAtItsInnerPlaceOnAnyStore(t *testing.T) {
	onEach(t, func(t *testing.T, b backend, d *data) {
		var mu sync.Mutex
		bodies := map[string]int{}
		define := func(count map[string]int) *durable.Workflow[int, []string] {
			return durable.Define("composite", func(ctx context.Context, _ int) ([]string, error) {
				return durable.Map(ctx, "items", []string{"x", "y", "z"}, durable.MapOptions{Concurrency: 1}, func(ctx context.Context, item string) (string, error) {
					out := item
					for _, name := range []string{"one", "two"} {
						v, err := durable.Step(ctx, name, func(context.Context) (string, error) {
							mu.Lock()
							defer mu.Unlock()
							count[item+"/"+name]++
							return name, nil
						})
						if err != nil {
							return "", err
						}
						out += " " + v
					}
					return out, nil
				})
			})
		}
		first := d.program(t, define(bodies))
		_, err := define(bodies).Run(first, "template", 0)
		require.NoError(t, err)
		require.NoError(t, first.eng.Close())
		row, events := d.log(t, "template")
		x := told{row, events}
		d.again(t, x, "r", x.upTo(t, store.StepCompleted, "items[1]/one"), store.Running)
		rowBefore, before := d.log(t, "r")

		operator := d.program(t)
		rec, err := operator.eng.RecoverRun(operator, "r")
		require.NoError(t, err)
		require.Equal(t, durable.Recovery{RunID: "r"}, rec)
		rowNow, now := d.log(t, "r")
		require.Equal(t, rowBefore, rowNow, "nothing is written")
		require.Equal(t, before, now, "nothing is written")

		again := map[string]int{}
		p := d.program(t, define(again))
		h, err := define(again).Handle(p, "r")
		require.NoError(t, err)
		out, err := h.Wait(p)
		require.NoError(t, err)
		require.Equal(t, []string{"x one two", "y one two", "z one two"}, out)
		require.Equal(t, map[string]int{"y/two": 1, "z/one": 1, "z/two": 1}, again)
	})
}

// E1 on every store: a row without a version is no error. The run goes on with the
// version it began with, although another one is there, and is pinned to it.
func TestARunWithoutAVersionGoesOnWithItsInitialOneOnAnyStore(t *testing.T) {
	onEach(t, func(t *testing.T, b backend, d *data) {
		x := d.tell(t)
		x.row.Version = ""
		d.again(t, x, "r", x.upTo(t, store.SignalReceived, "approve"), store.Running)
		_, before := d.log(t, "r")
		operator := d.program(t)
		rec, err := operator.eng.RecoverRun(operator, "r")
		require.NoError(t, err)
		require.Equal(t, durable.Recovery{RunID: "r"}, rec)
		_, now := d.log(t, "r")
		require.Equal(t, before, now, "nothing is written")

		one, two := &orders{bodies: map[string]int{}}, &orders{bodies: map[string]int{}}
		wf := one.workflow("1")
		p := d.program(t, two.define("2"), wf)
		h, err := wf.Handle(p, "r")
		require.NoError(t, err)
		out, err := h.Wait(p)
		require.NoError(t, err)
		require.Equal(t, "a!b", out)
		require.Equal(t, "map[b:1] map[]", fmt.Sprint(one.bodies, two.bodies), "by version 1 alone")
		row, _ := d.log(t, "r")
		require.Equal(t, "1", row.Version)
	})
}
