package proof_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// between is when something happened, in µs: not before from, and not after to.
type between struct{ from, to int64 }

// surelyBefore reports whether b happened before c.
func (b between) surelyBefore(c between) bool { return b.to < c.from }

// book is what is known of all runs in the end: what the ledger says, and what the store does.
type book struct {
	facts []fact
	rules []durable.Queue
	// wait and most are those of debounced starts.
	wait, most time.Duration
	logf       func(format string, args ...any)
	runs       map[string]store.Run
	// begins is when a run was let in: during the claim that took it. Of one whose process was
	// killed before it could tell, some claim that the kill has cut short has taken it.
	begins map[string]between
	// starts are the starts that have returned, by run; one has several if it is debounced.
	starts map[string][]fact
	// tolerance is how far the clock of an engine may be from that of the store: as long as
	// the slowest heartbeat took, from which it knows that clock.
	tolerance int64
}

func readBook(t *testing.T, st store.Store, o orders, rules []durable.Queue) *book {
	t.Helper()
	b := &book{facts: ledger(t, o), rules: rules, logf: t.Logf, wait: bounceWait, most: bounceMost, runs: map[string]store.Run{}, begins: map[string]between{}, starts: map[string][]fact{}}
	cancelling := map[string]bool{}
	for _, f := range b.facts {
		if f.What == "cancelling" {
			cancelling[f.Run] = true
		}
	}
	for f := (store.Filter{Limit: 500}); ; {
		page, err := st.List(t.Context(), f)
		require.NoError(t, err)
		for _, r := range page.Runs {
			b.runs[r.ID] = r
			soundHistory(t, st, r, cancelling[r.ID])
		}
		if f.After = page.Next; f.After == "" {
			break
		}
	}
	claiming := map[string]between{} // the claims of which no end is known
	for _, f := range b.facts {
		switch call := fmt.Sprint(f.PID, "/", f.N); f.What {
		case "claiming":
			claiming[call] = between{f.At, math.MaxInt64}
		case "claimed":
			for _, id := range f.IDs {
				require.NotContains(t, b.begins, id, "it was let in twice")
				b.begins[id] = between{claiming[call].from, f.At}
			}
			delete(claiming, call)
		case "killing":
			for call, w := range claiming {
				if f.Step != "" && strings.HasPrefix(call, fmt.Sprint(f.PID, "/")) { // it has killed itself, and takes nothing afterwards
					claiming[call] = between{w.from, f.At}
				}
			}
		case "enter":
			if _, known := b.begins[f.Run]; known {
				break
			}
			cut := between{math.MaxInt64, 0}
			for _, w := range claiming {
				cut = between{min(cut.from, w.from), max(cut.to, min(w.to, f.At))}
			}
			require.LessOrEqual(t, cut.from, f.At, "%s is executed, and no claim has taken it", f.Run)
			b.begins[f.Run] = cut
		case "started":
			b.starts[f.Run] = append(b.starts[f.Run], f)
		case "beat":
			b.tolerance = max(b.tolerance, int64(f.N))
		}
	}
	for id := range cancelling {
		if b.runs[id].Status == store.Cancelled {
			delete(b.begins, id) // it was taken without a place
		}
	}
	return b
}

// soundHistory reads one run back: it has ended well, and each thing in it happened once; or it
// was cancelled in line, if it may be.
func soundHistory(t *testing.T, st store.Store, r store.Run, mayBeCancelled bool) {
	t.Helper()
	if !mayBeCancelled || r.Status != store.Cancelled {
		require.Equal(t, store.Completed, r.Status, "run %s: %s", r.ID, r.Reason)
	}
	h, err := st.Load(t.Context(), r.ID, store.Cursor{All: true})
	require.NoError(t, err)
	count := map[store.Type]int{}
	var before store.Event
	for e, err := range h.Events {
		require.NoError(t, err)
		require.Equal(t, before.Seq+1, e.Seq, "run %s", r.ID)
		require.Equal(t, store.Seal(r.ID, before.Sum, &e), e.Sum, "run %s, event %d", r.ID, e.Seq)
		before = e
		count[e.Type]++
	}
	if r.Status == store.Cancelled {
		require.Zero(t, count[store.StepCompleted], "run %s was cancelled in line, and executes nothing", r.ID)
		return
	}
	require.Equal(t, 1, count[store.WorkflowStarted], "run %s began once", r.ID)
	require.Equal(t, 1, count[store.WorkflowCompleted], "run %s ended once", r.ID)
	require.Equal(t, 2, count[store.StepCompleted], "each of the two steps of run %s was recorded once", r.ID)
}

// deduped reports whether a fact is about a start with Dedup: of those with a key, the others
// tell by their N which debounced start they are.
func (f *fact) deduped() bool { return f.Key != "" && f.N == 0 }

func (b *book) count(what string) (n int) {
	for _, f := range b.facts {
		if f.What == what {
			n++
		}
	}
	return n
}

func (b *book) checkAll(t *testing.T) {
	t.Helper()
	b.checkNothingLost(t)
	b.checkNothingTwice(t)
	b.checkPlaces(t)
	b.checkRates(t)
	b.checkTurns(t)
	b.checkRanks(t)
	b.checkDelays(t)
	b.checkPauses(t)
	b.checkDedup(t)
	b.checkDebounce(t)
	t.Logf("%d runs, %d kills, %d bodies, the clocks of engines at most %d µs off", len(b.runs), b.count("killing"), b.count("enter"), b.tolerance)
}

// Whatever start has returned, its run is there, in its place, and was executed.
func (b *book) checkNothingLost(t *testing.T) {
	t.Helper()
	for id, starts := range b.starts {
		r, there := b.runs[id]
		require.True(t, there, "the start of %s has returned, and it is lost", id)
		for _, f := range starts {
			require.Equal(t, []any{f.Queue, f.Part, f.Priority}, []any{r.Queue, r.Partition, int(r.Priority)}, "where %s stands in line", id)
		}
		if r.Status != store.Cancelled {
			require.Contains(t, b.begins, id)
		}
	}
	for id := range b.begins {
		require.Contains(t, b.runs, id, "a run was executed that is not there")
	}
}

// A body is executed again only where the process was killed that had it.
func (b *book) checkNothingTwice(t *testing.T) {
	t.Helper()
	killed, had := map[int]bool{}, map[string]int{}
	again := 0
	for _, f := range b.facts {
		switch f.What {
		case "killing":
			killed[f.PID] = true
		case "enter":
			body := f.Run + "/" + f.Step
			if pid, ok := had[body]; ok {
				require.True(t, killed[pid], "%s is executed by %d, and was by %d, which lives", body, f.PID, pid)
				again++
			}
			had[body] = f.PID
		}
	}
	b.logf("%d bodies were under way at a kill and were executed again", again)
}

// visits lists what the ledger says of the bodies of a queue, and of the ends of processes.
func (b *book) visits(queue string) string {
	var s strings.Builder
	for _, f := range b.facts {
		if f.Queue == queue && (f.What == "enter" || f.What == "leave") || f.What == "killing" {
			fmt.Fprintln(&s, f.At, f.PID, f.What, f.Run, f.Step)
		}
	}
	return s.String()
}

// No more runs are executed at once than the queue lets in: a run is from its first body to the
// end of its last, also while its process is dead, because it holds its place.
func (b *book) checkPlaces(t *testing.T) {
	t.Helper()
	limit := map[string]durable.Queue{}
	for _, q := range b.rules {
		limit[q.Name] = q
	}
	const perProcess = " in process "
	in, now, most := map[string][]string{}, map[string]int{}, map[string]int{}
	leave := func(run string) {
		for _, k := range in[run] {
			now[k]--
		}
		delete(in, run)
	}
	had := map[int][]string{} // by process, the runs that it has executed
	for _, f := range b.facts {
		switch f.What {
		case "killing": // its runs are in no process until another has them
			for _, run := range had[f.PID] {
				in[run] = slices.DeleteFunc(in[run], func(k string) bool {
					here := strings.HasSuffix(k, fmt.Sprint(perProcess, f.PID))
					if here {
						now[k]--
					}
					return here
				})
			}
		case "leave":
			leave(f.Run)
		case "enter":
			leave(f.Run)
			in[f.Run] = []string{f.Queue, f.Queue + " of " + f.Part, fmt.Sprint(f.Queue, perProcess, f.PID)}
			had[f.PID] = append(had[f.PID], f.Run)
			for _, k := range in[f.Run] {
				now[k]++
				most[k] = max(most[k], now[k])
			}
			q := limit[f.Queue]
			for i, most := range []int{q.Max, q.MaxPerPartition, q.MaxPerProcess} {
				if k := in[f.Run][i]; most > 0 {
					require.LessOrEqual(t, now[k], most, "%s, when %s came:\n%s", k, f.Run, b.visits(f.Queue))
				}
			}
		}
	}
	for _, q := range b.rules {
		if q.Max > 0 {
			b.logf("at once: %d of %d in %s", most[q.Name], q.Max, q.Name)
		}
	}
}

// No window of the rate has more beginnings, however it is laid: those that surely lie in one
// that begins with a claim are counted.
func (b *book) checkRates(t *testing.T) {
	t.Helper()
	for _, q := range b.rules {
		if q.Rate > 0 {
			b.checkRate(t, q)
		}
	}
}

func (b *book) checkRate(t *testing.T, q durable.Queue) {
	t.Helper()
	rate, per := q.Rate, q.Per.Microseconds()
	var begins []between
	for id, w := range b.begins {
		if b.runs[id].Queue == q.Name {
			begins = append(begins, w)
		}
	}
	full := 0
	for _, first := range begins {
		in := 0
		for _, w := range begins {
			if w.from >= first.from && w.to < first.from+per {
				in++
			}
		}
		require.LessOrEqual(t, in, rate, "in %d µs from %d", per, first.from)
		if in == rate {
			full++
		}
	}
	b.logf("%d of %d windows of the rate were surely full", full, len(begins))
}

// line returns when the runs of a queue were surely in line, those whose start has returned.
func (b *book) line(queue string) map[string]int64 {
	since := map[string]int64{}
	for id, starts := range b.starts {
		if starts[0].Queue == queue {
			since[id] = starts[0].At
		}
	}
	return since
}

// Tenants take turns: while a run is in line, any other tenant begins at most as many runs as
// its own does until it is let in, itself included.
func (b *book) checkTurns(t *testing.T) {
	t.Helper()
	part := func(id string) string { return b.runs[id].Partition }
	waited := 0
	for id, since := range b.line("turns") {
		me, own, others := b.begins[id], 1, map[string]int{}
		for other, w := range b.begins {
			switch {
			case b.runs[other].Queue != "turns" || other == id:
			case part(other) == part(id) && w.to >= since && w.from <= me.to:
				own++
			case part(other) != part(id) && w.from > since && w.surelyBefore(me):
				others[part(other)]++
			}
		}
		for tenant, n := range others {
			waited++
			require.LessOrEqual(t, n, own, "%d runs of %s began while %s of %s was in line, and %d of its own", n, tenant, id, part(id), own)
		}
	}
	b.logf("%d times a run waited for another tenant", waited)
}

// Within a partition the run comes first that has waited longest, an hour longer for each step
// of its priority: none is overtaken by one that has become due later than that.
func (b *book) checkRanks(t *testing.T) {
	t.Helper()
	rank := func(id string) int64 {
		f := b.starts[id][0]
		return f.Due - int64(f.Priority)*time.Hour.Microseconds()
	}
	inLine, pairs := b.line("ranks"), 0
	for id, since := range inLine {
		for other := range inLine {
			if rank(id) < rank(other) && since < b.begins[other].from {
				pairs++
				require.False(t, b.begins[other].surelyBefore(b.begins[id]), "%s, of rank %d, began before %s, of rank %d, which was in line", other, rank(other), id, rank(id))
			}
		}
	}
	b.logf("%d pairs of runs were in line together", pairs)
}

// No run begins before it is due.
func (b *book) checkDelays(t *testing.T) {
	t.Helper()
	for id, starts := range b.starts {
		for _, f := range starts {
			if f.Delay > 0 {
				require.GreaterOrEqual(t, b.begins[id].to, f.Since+f.Delay-b.tolerance, "%s began too early", id)
			}
		}
	}
}

// A queue that is paused lets nobody in.
func (b *book) checkPauses(t *testing.T) {
	t.Helper()
	paused, in := map[string]int64{}, 0
	for _, f := range b.facts {
		switch f.What {
		case "paused":
			paused[f.Queue] = f.At
		case "resuming":
			for id, w := range b.begins {
				require.False(t, b.runs[id].Queue == f.Queue && w.from > paused[f.Queue] && w.to < f.At, "%s was let in while %s was paused", id, f.Queue)
			}
			in++
		}
	}
	b.logf("%d pauses", in)
}

// Of the runs with one key, the next is started only when the one before has ended.
func (b *book) checkDedup(t *testing.T) {
	t.Helper()
	left := map[string]int64{} // when the last body of a run has ended
	for _, f := range b.facts {
		switch f.What {
		case "leave":
			left[f.Run] = f.At
		case "refused":
			require.Contains(t, b.runs, f.Run, "who refuses a start is there")
			require.Equal(t, f.Key, b.runs[f.Run].Dedup, "it has the key")
		}
	}
	for id, starts := range b.starts {
		if !starts[0].deduped() {
			continue
		}
		for other, ones := range b.starts {
			if other != id && ones[0].deduped() && ones[0].Key == starts[0].Key && ones[0].At < starts[0].Since {
				require.Less(t, left[other], starts[0].At, "%s was started with the key of %s, which had not ended", id, other)
			}
		}
	}
}

// A start with Debounce is executed with its own input or with that of a later start, no
// earlier than the wait after it, but for the longest wait after the first.
func (b *book) checkDebounce(t *testing.T) {
	t.Helper()
	asked, returned, killed := map[int]fact{}, map[int]fact{}, map[int]int64{}
	input := map[string]int{} // what a run was executed with
	for _, f := range b.facts {
		switch {
		case f.What == "killing":
			killed[f.PID] = f.At
		case f.N == 0: // it is not debounced
		case f.What == "starting":
			asked[f.N] = f
		case f.What == "started":
			returned[f.N] = f
		case f.What == "enter":
			if n, ok := input[f.Run]; ok {
				require.Equal(t, n, f.N, "%s has one input", f.Run)
			}
			input[f.Run] = f.N
		}
	}
	joined := 0
	for _, start := range returned {
		id := start.Run
		last, ok := returned[input[id]]
		if !ok { // its process was killed before it could tell
			last = asked[input[id]]
			last.Run, last.At = id, killed[last.PID]
		}
		require.Equal(t, id, last.Run, "%s was executed with the input of another run", id)
		require.LessOrEqual(t, start.Since, last.At, "the input of start %d is lost: %s was executed with that of %d, which had returned before", start.N, id, input[id])
		due := min(start.Since+b.wait.Microseconds(), int64(b.runs[id].CreatedAt)+b.most.Microseconds())
		require.GreaterOrEqual(t, b.begins[id].to, due-2*b.tolerance, "%s began too early after start %d", id, start.N)
		if start.N != input[id] {
			joined++
		}
	}
	b.logf("%d of %d debounced starts became part of another", joined, len(returned))
}
