package durable_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
)

// project is a state of many kinds of variables.
type project struct {
	Name  string
	Files map[string][]byte
	Tree  []branchOfTree
	Notes []string
	Ratio float64
	Ready *bool
}

type branchOfTree struct {
	Path string
	Kids []branchOfTree
}

// bigProject is one of some megabytes, half of which does not compress.
func bigProject(seed uint64) project {
	r := rand.New(rand.NewPCG(seed, 1))
	yes := true
	p := project{Name: fmt.Sprint("project \u00e9 ", seed), Files: map[string][]byte{}, Ratio: 1.0 / 3, Ready: &yes}
	for i := range 16 {
		b := make([]byte, 128<<10)
		for k := 0; k < len(b); k += 8 {
			binary.LittleEndian.PutUint64(b[k:], r.Uint64())
		}
		p.Files[fmt.Sprint("file ", i)] = b
	}
	for i := range 100 {
		t := branchOfTree{Path: fmt.Sprint("/", i)}
		for k := range 20 {
			t.Kids = append(t.Kids, branchOfTree{Path: fmt.Sprint("/", i, "/", k)})
		}
		p.Tree = append(p.Tree, t)
	}
	for range 64 {
		p.Notes = append(p.Notes, strings.Repeat("the same words again and again ", 1024))
	}
	return p
}

// How long it takes stands in docs/performance.md (STATE).
func TestALargeStateIsSavedOnceAndRestoredWhole(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const steps, length = 4, 2000
		var states [steps]project
		for i := range states {
			states[i] = bigProject(uint64(i))
		}
		made, whole := map[string]int{}, 0
		var h hold
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			for i := range states {
				name := fmt.Sprint("state-", i)
				p, err := durable.Step(ctx, name, func(context.Context) (project, error) { made[name]++; return states[i], nil })
				if err != nil {
					return 0, err
				}
				if reflect.DeepEqual(p, states[i]) {
					whole++
				}
			}
			sum := 0
			for i := range length {
				v, err := durable.Step(ctx, "small", func(context.Context) (int, error) { made["small"]++; return i, nil })
				if err != nil {
					return 0, err
				}
				sum += v
			}
			return sum, durable.Do(ctx, "hold", h.body)
		})
		w.serve(t, wf)
		start(t, w, wf, "r", 0)
		pass(0)
		require.Equal(t, 1, h.count(), "it was killed behind all of it: %s", w.log)
		w.reboot(t, with(wf))
		sum, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, length*(length-1)/2, sum)
		require.Equal(t, 2*steps, whole, "in both lives the function saw what was made")
		require.Equal(t, map[string]int{"state-0": 1, "state-1": 1, "state-2": 1, "state-3": 1, "small": length}, made, "what was saved is not made again")
	})
}
