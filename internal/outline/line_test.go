package outline_test

import (
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/store"
)

func noEvents() iter.Seq2[store.Event, error] {
	return func(func(store.Event, error) bool) {}
}

func at(clock string) store.Time {
	t, err := time.Parse("2006-01-02 15:04:05", "2026-11-23 "+clock)
	if err != nil {
		panic(err)
	}
	return store.TimeOf(t)
}

// queue is a queue of two places with a limit for each partition and a rate.
func queue(change func(*store.QueueState)) store.QueueState {
	q := store.QueueState{
		Queue:  store.Queue{Name: "emails", Max: 2, MaxPerPartition: 1, Rate: 10, Per: time.Minute},
		InLine: 5, Partitions: []store.PartitionState{{Name: "acme", InLine: 3}, {Name: "globex", InLine: 2}},
	}
	if change != nil {
		change(&q)
	}
	return q
}

func TestTheVerdictOnAQueuedRunSaysWhereItStandsAndWhatHoldsItUp(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(*store.QueueState)
		unserved bool
		want     string
		reason   outline.Reason
	}{
		"nothing":   {nil, false, "3rd in line of emails, partition acme; a process is to take it.", outline.Free},
		"its queue": {func(q *store.QueueState) { q.Placed = 2 }, false, "3rd in line of emails, partition acme; 2 of 2 run.", outline.AtLimit},
		"its partition": {func(q *store.QueueState) { q.Placed, q.Partitions[0].Placed = 1, 1 }, false,
			"3rd in line of emails, partition acme; acme is at its limit of 1.", outline.PartitionAtLimit},
		"the limit of another partition": {func(q *store.QueueState) { q.Placed, q.Partitions[1].Placed = 1, 1 }, false,
			"3rd in line of emails, partition acme; a process is to take it.", outline.Free},
		"the rate": {func(q *store.QueueState) { q.NextAt = at("12:00:05") }, false,
			"3rd in line of emails, partition acme; the next begins 12:00:05 by the rate of 10 in 1 min.", outline.ByRate},
		"a person": {func(q *store.QueueState) { q.Paused, q.Queue.Reason = true, "deploy" }, false,
			"3rd in line of emails, partition acme; the queue is paused: “deploy”.", outline.QueuePaused},
		"everything": {func(q *store.QueueState) {
			q.Paused, q.Placed, q.Partitions[0].Placed, q.NextAt = true, 2, 1, at("12:00:05")
		}, false, "3rd in line of emails, partition acme; the queue is paused; 2 of 2 run; acme is at its limit of 1; the next begins 12:00:05 by the rate of 10 in 1 min.", outline.QueuePaused},
		"nobody":              {nil, true, "Not begun: no live process serves mail. It is 3rd in line of emails, partition acme.", outline.Unserved},
		"nobody of its queue": {nil, true, "Not begun: no live process serves mail from queue emails. It is 3rd in line of emails, partition acme.", outline.Unserved},
	} {
		t.Run(name, func(t *testing.T) {
			line := &outline.Line{Queue: queue(c.change), Partition: "acme", Position: 3, Served: !c.unserved}
			run := store.Run{ID: "r", Workflow: "mail", Status: store.Pending, Queue: "emails", Partition: "acme"}
			executors := []store.Executor{{ID: "x", Live: true, Serves: []store.Served{{Workflow: "mail", Versions: []string{""}}}}}
			if c.unserved {
				executors = []store.Executor{}
			}
			if name == "nobody of its queue" {
				executors = []store.Executor{{ID: "x", Live: true, Serves: []store.Served{{Workflow: "mail", Versions: []string{""}, Queues: []string{"letters"}}}}}
			}
			o, err := outline.Of(outline.Input{Run: run, Executors: executors, Line: line, Now: at("12:00:00")}, noEvents())
			require.NoError(t, err)
			require.Equal(t, c.want, o.Verdict.Text())
			why, until := line.Reason()
			require.Equal(t, c.reason, why)
			require.Equal(t, why == outline.ByRate, until != 0)
		})
	}
}

func TestTheVerdictOnADelayedRunOfAQueueSaysWhenItGetsInLine(t *testing.T) {
	run := store.Run{ID: "r", Workflow: "mail", Status: store.Pending, Queue: "emails", WakeAt: at("12:30:00")}
	o, err := outline.Of(outline.Input{Run: run, Now: at("12:00:00")}, noEvents())
	require.NoError(t, err)
	require.Equal(t, "Not begun: it gets in line of emails 12:30:00.", o.Verdict.Text())
}

func TestTheVerdictOnAnInterruptedRunSaysThatItIsInLineAgain(t *testing.T) {
	run := store.Run{ID: "r", Workflow: "mail", Status: store.Interrupted, Queue: "emails"}
	line := &outline.Line{Queue: store.QueueState{Queue: store.Queue{Name: "emails", Max: 1}, Placed: 1, InLine: 1}, Position: 1, Served: true}
	o, err := outline.Of(outline.Input{Run: run, Line: line, Now: at("12:00:00")}, noEvents())
	require.NoError(t, err)
	require.Contains(t, o.Verdict.Text(), "It is 1st in line of emails; 1 of 1 run.")
}

func TestEachRunInLineIsCountedForOneReason(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(*store.QueueState)
		unserved int64
		want     []outline.LineWait
	}{
		"empty":                                {func(q *store.QueueState) { q.InLine, q.Partitions = 0, nil }, 0, nil},
		"free":                                 {nil, 0, []outline.LineWait{{Reason: outline.Free, Runs: 5}}},
		"paused":                               {func(q *store.QueueState) { q.Paused, q.Placed = true, 2 }, 2, []outline.LineWait{{Reason: outline.QueuePaused, Runs: 5}}},
		"full":                                 {func(q *store.QueueState) { q.Placed = 2 }, 0, []outline.LineWait{{Reason: outline.AtLimit, Runs: 5}}},
		"over the limit, since it was lowered": {func(q *store.QueueState) { q.Placed = 7 }, 0, []outline.LineWait{{Reason: outline.AtLimit, Runs: 5}}},
		"a partition is full, and the rate": {func(q *store.QueueState) { q.Placed, q.Partitions[0].Placed, q.NextAt = 1, 1, at("12:00:05") }, 0,
			[]outline.LineWait{{Reason: outline.PartitionAtLimit, Partition: "acme", Runs: 3}, {Reason: outline.ByRate, Runs: 2, Until: at("12:00:05")}}},
		"some are not served": {nil, 2, []outline.LineWait{{Reason: outline.Unserved, Runs: 2}, {Reason: outline.Free, Runs: 3}}},
		"more are not served than are in line, as some are delayed": {nil, 9, []outline.LineWait{{Reason: outline.Unserved, Runs: 5}}},
	} {
		t.Run(name, func(t *testing.T) {
			q := queue(c.change)
			require.Equal(t, c.want, outline.WaitsOf(&q, c.unserved))
		})
	}
}

func TestOrdinalsAreWrittenAsPeopleSayThem(t *testing.T) {
	for n, want := range map[int64]string{1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 11: "11th", 12: "12th", 13: "13th", 21: "21st", 102: "102nd", 111: "111th", 1001: "1,001st"} {
		require.Equal(t, want, outline.Ordinal(n))
	}
}
