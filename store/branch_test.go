package store_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/store"
)

func TestLineageOfHoldsWhatNoCutTookAway(t *testing.T) {
	branches := []store.Branch{
		{N: 1, Parent: 0, Cutoff: 5},
		{N: 2, Parent: 1, Cutoff: 8},
		{N: 3, Parent: 0, Cutoff: 3},
		{N: 4, Parent: 2, Cutoff: 6}, // cut again before the first cut of its parent
	}
	kept := func(n int32) []string {
		l := store.LineageOf(branches, n)
		var has []string
		for branch := int32(0); branch <= 5; branch++ {
			for seq := int64(1); seq <= 10; seq++ {
				if l.Has(&store.Event{Seq: seq, Branch: branch}) {
					has = append(has, fmt.Sprintf("%d:%d", branch, seq))
				}
			}
		}
		return has
	}
	upTo := func(branch, n int) (all []string) {
		for seq := 1; seq <= n; seq++ {
			all = append(all, fmt.Sprintf("%d:%d", branch, seq))
		}
		return all
	}
	for n, want := range map[int32][]string{
		0: upTo(0, 10),
		1: slices.Concat(upTo(0, 5), upTo(1, 10)),
		2: slices.Concat(upTo(0, 5), upTo(1, 8), upTo(2, 10)),
		3: slices.Concat(upTo(0, 3), upTo(3, 10)),
		4: slices.Concat(upTo(0, 5), upTo(1, 6), upTo(2, 6), upTo(4, 10)),
		5: upTo(5, 10), // one that is not listed is a root
	} {
		require.Equal(t, want, kept(n), "branch %d", n)
	}
	require.Equal(t, []int32{4, 2, 1, 0}, store.LineageOf(branches, 4).Branches())
	require.Equal(t, []int32{0}, store.LineageOf(nil, 0).Branches())
	require.False(t, store.Lineage{}.Has(&store.Event{Seq: 1}), "the zero Lineage holds nothing")
}

func TestLineageCutInAScopeKeepsWhatIsBeside(t *testing.T) {
	l := store.LineageOf([]store.Branch{{N: 1, Cutoff: 5, CutScope: "items[3]"}, {N: 2, Parent: 1, Cutoff: 7}}, 2)
	for _, c := range []struct {
		branch int32
		seq    int64
		key    string
		want   bool
	}{
		{0, 5, "items[3]/a", true}, {0, 6, "items[3]/a", false}, {0, 6, "items[3]", false}, {0, 6, "items[31]/a", true},
		{0, 7, "items[2]/a", true}, {0, 8, "items[2]/a", false}, // the second cut takes everything
		{1, 7, "items[3]/a", true}, {1, 8, "z", false}, {2, 99, "items[3]/a", true},
	} {
		require.Equal(t, c.want, l.Has(&store.Event{Seq: c.seq, Branch: c.branch, Key: c.key}), "%+v", c)
	}
}

// A damaged record must not make a loop.
func TestLineageOfDamagedBranchesEnds(t *testing.T) {
	for _, branches := range [][]store.Branch{
		{{N: 1, Parent: 1}}, {{N: 1, Parent: 2}, {N: 2, Parent: 1}}, {{N: 0, Parent: 0}}, {{N: -1, Parent: -1}}, {{N: 3, Parent: 7}},
	} {
		require.NotEmpty(t, store.LineageOf(branches, branches[0].N).Branches())
	}
}

// Lineages of one tree share what they should: a branch holds of its parent's
// lineage exactly what its cut kept.
func TestLineageIsTheParentsUpToTheCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var branches []store.Branch
		count := rapid.Int32Range(1, 6).Draw(t, "branches")
		for n := int32(1); n <= count; n++ {
			branches = append(branches, store.Branch{
				N: n, Parent: rapid.Int32Range(0, n-1).Draw(t, "parent"), Cutoff: rapid.Int64Range(0, 20).Draw(t, "cutoff"),
				CutScope: rapid.SampledFrom([]string{"", "", "a", "a/b"}).Draw(t, "scope"),
			})
		}
		b := rapid.SampledFrom(branches).Draw(t, "branch")
		mine, parents := store.LineageOf(branches, b.N), store.LineageOf(branches, b.Parent)
		e := &store.Event{
			Seq: rapid.Int64Range(1, 20).Draw(t, "seq"), Branch: rapid.Int32Range(0, 6).Draw(t, "of"),
			Key:  rapid.SampledFrom([]string{"", "a", "a/b", "a/bc", "b"}).Draw(t, "key"),
			Type: rapid.SampledFrom([]store.Type{store.StepCompleted, store.Edited}).Draw(t, "type"),
		}
		narrow := b.CutScope != "" && (!store.InScope(e.Key, b.CutScope) || e.Type == store.Edited)
		want := e.Branch == b.N || parents.Has(e) && (e.Seq <= b.Cutoff || narrow)
		if got := mine.Has(e); got != want {
			t.Fatalf("branch %d of %+v, event %+v: got %v, want %v", b.N, branches, e, got, want)
		}
	})
}

func TestInScope(t *testing.T) {
	for _, c := range []struct {
		key, scope string
		want       bool
	}{
		{"", "", true}, {"a", "", true}, {"a", "a", true}, {"a/b", "a", true}, {"a/b/c", "a/b", true}, {"ab", "a", false}, {"a", "a/b", false},
		{"items[31]/x", "items[3]", false}, {"items[3]/resize", "items[3]", true}, {"items[3]#2", "items[3]", false}, {"", "a", false},
	} {
		require.Equal(t, c.want, store.InScope(c.key, c.scope), "%q in %q", c.key, c.scope)
	}
}
