package durable_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
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
		for k := range b {
			b[k] = byte(r.Uint32())
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
		const steps, length = 6, 2000
		made := map[string]int{}
		var h hold
		wf := durable.Define("w", func(ctx context.Context, _ int) (string, error) {
			sum := sha256.New()
			for i := range steps {
				name := fmt.Sprint("state-", i)
				p, err := durable.Step(ctx, name, func(context.Context) (project, error) { made[name]++; return bigProject(uint64(i)), nil })
				if err != nil {
					return "", err
				}
				fmt.Fprintf(sum, "%v %v\n", p.Ready != nil && *p.Ready, project{p.Name, p.Files, p.Tree, p.Notes, p.Ratio, nil})
			}
			n := 0
			for i := range length {
				v, err := durable.Step(ctx, "small", func(context.Context) (int, error) { made["small"]++; return i, nil })
				if err != nil {
					return "", err
				}
				n += v
			}
			if err := durable.Do(ctx, "hold", h.body); err != nil {
				return "", err
			}
			return fmt.Sprintf("%x %d", sum.Sum(nil), n), nil
		})
		w.serve(t, wf)
		start(t, w, wf, "r", 0)
		pass(0)
		require.Equal(t, 1, h.count(), "it was killed behind all of it: %s", w.log)
		w.reboot(t, with(wf))
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)

		want := sha256.New()
		for i := range steps {
			p := bigProject(uint64(i))
			p.Ready = nil
			fmt.Fprintf(want, "true %v\n", p)
		}
		require.Equal(t, fmt.Sprintf("%x %d", want.Sum(nil), length*(length-1)/2), out)
		require.Equal(t, map[string]int{
			"state-0": 1, "state-1": 1, "state-2": 1, "state-3": 1, "state-4": 1, "state-5": 1, "small": length,
		}, made, "what was saved is not made again")
	})
}
