package conformance_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/conformance"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// table is a table of requests in memory. Its mutex is the transaction: what a drain
// does to the store and to the table is seen together.
type table struct {
	mu   sync.Mutex
	rows []*tableRow
}

type tableRow struct {
	store.Request
	answer conformance.RequestAnswer
	doneAt store.Time
}

func (t *table) reached() *conformance.RequestTable {
	return &conformance.RequestTable{
		Insert: func(rows ...store.Request) (nos []int64, err error) {
			t.mu.Lock()
			defer t.mu.Unlock()
			for _, r := range rows {
				r.No, r.CreatedAt = int64(len(t.rows))+1, store.TimeOf(time.Now())
				t.rows = append(t.rows, &tableRow{Request: r})
				nos = append(nos, r.No)
			}
			return nos, nil
		},
		Answer: func(no int64) (conformance.RequestAnswer, bool, error) {
			t.mu.Lock()
			defer t.mu.Unlock()
			if r := t.rows[no-1]; r != nil {
				return r.answer, true, nil
			}
			return conformance.RequestAnswer{}, false, nil
		},
	}
}

// asking is a store with a table of requests, wrong in at most one way.
type asking struct {
	store.Store
	table *table
	wrong string
}

func (a asking) is(wrong string) bool { return a.wrong == wrong }

func (a asking) DrainRequests(ctx context.Context, d store.Drain) (out store.Drained, err error) {
	if _, err := a.List(ctx, store.Filter{Limit: 1}); err != nil && !a.is("answers when it is closed") {
		return out, err
	}
	a.table.mu.Lock()
	rows := slices.Clone(a.table.rows)
	if a.is("answers twice") {
		for i, r := range rows {
			own := *r
			rows[i] = &own
		}
		a.table.mu.Unlock()
		time.Sleep(time.Millisecond)
	} else {
		defer a.table.mu.Unlock()
	}
	if a.is("ignores the number of requests") && d.Max > 0 {
		d.Max = 1000
	}
	now := store.TimeOf(time.Now())
	taken := 0
	if a.is("answers the last first") {
		slices.Reverse(rows)
	}
	for _, r := range rows {
		switch {
		case taken >= d.Max:
			out.Last = max(out.Last, d.After)
		case r == nil || r.answer.Done || r.No <= d.After:
			continue
		case r.Kind == store.RequestStart && !slices.Contains(d.Serves, r.Workflow) && r.CreatedAt > now.Add(-d.Leave) && !a.is("takes starts of any workflow"):
			continue
		}
		if taken >= d.Max {
			break
		}
		taken++
		if out.Last = r.No; a.is("does not say how far it came") {
			out.Last = 0
		}
		earlier := func(e *tableRow) bool {
			return e != nil && !e.answer.Done && e.RunID != "" && e.RunID == r.RunID && e.No < r.No
		}
		if slices.ContainsFunc(rows, earlier) && !a.is("passes by what comes before") {
			if out.Left = true; a.is("does not say that it left some") {
				out.Left = false
			}
			continue
		}
		a.carryOut(ctx, d, r, now, &out)
		if a.is("answers twice") {
			a.table.mu.Lock()
			a.table.rows[r.No-1] = r
			a.table.mu.Unlock()
		}
		if r.answer.Code != "" && a.is("stops at one that is refused") {
			break
		}
	}
	if taken < d.Max {
		out.Last = 0
	}
	return out, nil
}

func (a asking) carryOut(ctx context.Context, d store.Drain, r *tableRow, now store.Time, out *store.Drained) {
	request := r.Request
	if a.is("trims what was inserted") {
		request.Input = strings.TrimSpace(request.Input)
	}
	if a.is("forgets when a request was inserted") {
		request.CreatedAt = 0
	}
	answer := store.Answer{Request: request, RunID: r.RunID}
	if len(r.Input) > a.Limits().Batch {
		answer.Err = store.ErrTooLarge
	}
	var c store.Change
	if answer.Err == nil {
		c, answer.Err = d.Form(request)
	}
	if answer.Err == nil {
		answer.Err = c.Validate(a.Limits())
	}
	if answer.Err == nil {
		commit := a.Commit
		if a.is("carries nothing out") {
			commit = func(context.Context, []store.Change) []error { return []error{nil} }
		}
		answer.Err = commit(ctx, []store.Change{c})[0]
		answer.RunID = c.RequestedRun()
		if a.is("tries half of what is refused") && answer.Err != nil && len(c.Start) > 0 {
			half := c.Start[0]
			half.Create.ID, half.RunID, half.Create.Dedup = "half", "half", ""
			_ = a.Commit(ctx, []store.Change{half})
		}
	}
	if a.is("answers what it left out") {
		out.Answers = append(out.Answers, answer)
		return
	}
	r.answer, r.doneAt = conformance.RequestAnswer{Done: true, RunID: answer.RunID}, now
	if answer.Err != nil {
		r.answer.Code, r.answer.Error = store.RequestCode(answer.Err), answer.Err.Error()
		if a.is("keeps the reason to itself") {
			r.answer.Code, r.answer.Error = "", ""
		}
	}
	if a.is("forgets the run") {
		r.answer.RunID = ""
	}
	out.Answers = append(out.Answers, answer)
}

func (a asking) DropRequests(ctx context.Context, before store.Time, limit int) (dropped int, err error) {
	if _, err := a.List(ctx, store.Filter{Limit: 1}); err != nil {
		return 0, err
	}
	a.table.mu.Lock()
	defer a.table.mu.Unlock()
	for i, r := range a.table.rows {
		if r != nil && (r.answer.Done || a.is("deletes open requests")) && r.doneAt < before && dropped < limit {
			a.table.rows[i] = nil
			dropped++
		}
	}
	return dropped, nil
}

func requestMutants() []mutant {
	list := []mutant{
		{"carries nothing out", "S38", "carried out and answered, once", nil},
		{"answers what it left out", "S38", "carried out and answered, once", nil},
		{"forgets the run", "S38", "carried out and answered, once", nil},
		{"answers the last first", "S38", "carried out and answered, once", nil},
		{"trims what was inserted", "S38", "as it was inserted", nil},
		{"forgets when a request was inserted", "S38", "as it was inserted", nil},
		{"keeps the reason to itself", "S38", "has its reason and no effect", nil},
		{"tries half of what is refused", "S38", "has its reason and no effect", nil},
		{"stops at one that is refused", "S39", "has its reason and no effect", nil},
		{"passes by what comes before", "S38", "carried out in their order", nil},
		{"answers twice", "S38", "one answers a request", nil},
		{"ignores the number of requests", "S39", "takes no more than it is to", nil},
		{"does not say how far it came", "S39", "takes no more than it is to", nil},
		{"takes starts of any workflow", "S39", "left to those who have its code", nil},
		{"does not say that it left some", "S39", "left to those who have its code", nil},
		{"deletes open requests", "S38", "answered long ago", nil},
		{"answers when it is closed", "S23", "answers no requests", nil},
	}
	return list
}

// askingHarness is the harness of a store with a table of requests.
func askingHarness(wrong string) conformance.Harness {
	return conformance.Harness{
		New: func(testing.TB) conformance.Data {
			s, rows := memory.Open(), &table{}
			return conformance.Data{
				Open:     func() (store.Store, error) { return asking{s.Handle(), rows, wrong}, nil },
				Requests: rows.reached(),
			}
		},
		Has:      []conformance.Capability{conformance.Requests},
		Patience: 3 * time.Second,
	}
}

func TestTheSuiteCatchesMutantsOfRequests(t *testing.T) {
	shown := make(map[string]bool)
	for _, m := range requestMutants() {
		t.Run(m.name, func(t *testing.T) {
			c := find(t, m.by)
			require.Contains(t, clausesOf(c), m.clause, "the case %q checks another clause", c.Title())
			failures := record(t, c.Title(), func(tb testing.TB) { c.Check(tb, askingHarness(m.name)) })
			require.NotEmpty(t, failures, "%q passes", c.Title())
			require.Regexp(t, `\b`+m.clause+`\b`, strings.Join(failures, "\n"), "the clause that is broken is named")
			if !shown[c.Title()] {
				shown[c.Title()] = true
				require.Empty(t, record(t, c.Title(), func(tb testing.TB) { c.Check(tb, askingHarness("")) }), "a sound store")
			}
		})
	}
}
