package conformance

import (
	"fmt"

	"github.com/holdfast-dev/holdfast/store"
)

var pageCases = []Case{
	{Name: "pages of every size give the whole once", Clauses: "S16", run: pageSizes},
	{Name: "without a limit a page has the default size", Clauses: "S16", run: pageDefault},
	{Name: "inserts and deletions do not shake the pages", Clauses: "S16", run: pageStable},
	{Name: "pages hold while others write", Clauses: "S16", run: pageConcurrent},
	{Name: "a cursor of another listing is refused", Clauses: "S16", run: pageForeign},
}

func pageSizes(t *T) {
	s := t.open()
	var want []string
	for i := range 10 {
		// Some have the same time: a cursor by time alone would skip or repeat them.
		at := store.Time(1_000_000 + i/4)
		want = append(want, t.run(s, fmt.Sprint("r", i), func(r *store.Run) { r.CreatedAt = at }).id)
	}
	for size := 1; size <= 12; size++ {
		require.Equal(t, want, ids(t.list(s, store.Filter{OldestFirst: true, Limit: size})), "S16: pages of %d", size)
	}
}

func pageDefault(t *T) {
	s := t.open()
	var batch []store.Change
	for i := range store.DefaultLimit + 5 {
		c, _ := t.create(fmt.Sprint("r", i))
		batch = append(batch, c)
	}
	t.must(s, batch...)
	p, err := s.List(t.Context(), store.Filter{})
	require.NoError(t, err)
	require.Len(t, p.Runs, store.DefaultLimit)
	require.NotEmpty(t, p.Next)
	p, err = s.List(t.Context(), store.Filter{After: p.Next})
	require.NoError(t, err)
	require.Len(t, p.Runs, 5)
	require.Empty(t, p.Next)
}

func pageStable(t *T) {
	for _, oldest := range []bool{false, true} {
		s := t.open()
		base := store.Time(1_000_000)
		create := func(id string, at store.Time) { t.run(s, id, func(r *store.Run) { r.CreatedAt = base + at }) }
		var want []string
		for i := range 10 {
			create(fmt.Sprint("stays", i), store.Time(10*i))
			create(fmt.Sprint("goes", i), store.Time(10*i))
			want = append(want, fmt.Sprint("stays", i))
		}
		var got []string
		f := store.Filter{OldestFirst: oldest, Limit: 3}
		for page := 0; ; page++ {
			p, err := s.List(t.Context(), f)
			require.NoError(t, err)
			var gone []string
			for _, r := range p.Runs {
				if r.ID[:4] == "stay" {
					got = append(got, r.ID)
				} else {
					gone = append(gone, r.ID) // the run that a cursor points to may be deleted
				}
			}
			if p.Next == "" {
				break
			}
			f.After = p.Next
			gone = append(gone, fmt.Sprint("goes", 9-page%10), fmt.Sprint("goes", page%10))
			_, err = s.Delete(t.Context(), store.Deletion{RunIDs: gone, Force: true})
			require.NoError(t, err)
			create(fmt.Sprintf("before%d", page), -1)
			create(fmt.Sprintf("amid%d", page), 45)
			create(fmt.Sprintf("behind%d", page), 1000)
			require.Less(t, page, 100, "a listing comes to its end")
		}
		if !oldest {
			for i, j := 0, len(want)-1; i < j; i, j = i+1, j-1 {
				want[i], want[j] = want[j], want[i]
			}
		}
		require.Equal(t, want, got, "S16: each run that was there all the time is listed once")
	}
}

func pageConcurrent(t *T) {
	d := t.fresh()
	s, other := t.handle(d), t.handle(d)
	const fixed = 15
	for i := range fixed {
		t.run(s, fmt.Sprint("fixed", i))
	}
	stop := make(chan struct{})
	t.together(2, func(i int) {
		if i == 0 {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				c, _ := t.create(fmt.Sprint("passing", n))
				if err := one(t.Context(), other, c); err != nil {
					t.Errorf("create: %v", err)
				}
				if _, err := other.Delete(t.Context(), store.Deletion{RunIDs: []string{fmt.Sprint("passing", n-2)}, Force: true}); err != nil {
					t.Errorf("delete: %v", err)
				}
			}
		}
		defer close(stop)
		for round := range 10 {
			seen := make(map[string]int)
			f := store.Filter{OldestFirst: round%2 == 0, Limit: 4}
			for {
				p, err := s.List(t.Context(), f)
				if err != nil {
					t.Errorf("list: %v", err)
					return
				}
				for _, r := range p.Runs {
					seen[r.ID]++
				}
				if p.Next == "" || len(seen) > 1000 {
					break
				}
				f.After = p.Next
			}
			for n := range fixed {
				if id := fmt.Sprint("fixed", n); seen[id] != 1 {
					t.Errorf("S16: %s was listed %d times", id, seen[id])
				}
			}
		}
	})
}

func pageForeign(t *T) {
	s := t.open()
	for i := range 6 {
		t.run(s, fmt.Sprint("r", i))
	}
	mine := store.Filter{Workflows: []string{workflow}, Limit: 2}
	p, err := s.List(t.Context(), mine)
	require.NoError(t, err)
	next := p.Next
	require.NotEmpty(t, next)
	for name, f := range map[string]store.Filter{
		"another order":   {Workflows: []string{workflow}, OldestFirst: true, After: next},
		"another filter":  {Workflows: []string{workflow, "mail"}, After: next},
		"no filter":       {After: next},
		"nonsense":        {Workflows: []string{workflow}, After: "nonsense"},
		"cut off":         {Workflows: []string{workflow}, After: next[:len(next)-1]},
		"injected":        {Workflows: []string{workflow}, After: "' OR 1=1 --"},
		"not even text":   {Workflows: []string{workflow}, After: "\x00\xff"},
		"something added": {Workflows: []string{workflow}, After: next + "A"},
	} {
		_, err := s.List(t.Context(), f)
		require.ErrorIs(t, err, store.ErrInvalid, name)
	}
	mine.After, mine.Limit = next, 3 // another page size does not make another listing
	p, err = s.List(t.Context(), mine)
	require.NoError(t, err)
	require.Len(t, p.Runs, 3)
}
