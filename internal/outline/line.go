package outline

import (
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/internal/count"
	"github.com/holdfast-dev/holdfast/store"
)

// Reason says what keeps runs in line for a place in their queue.
type Reason string

// The reasons, in the order in which they are given: the first one that keeps a run in
// line is the one that is said.
const (
	QueuePaused Reason = "paused"
	// Unserved: no live executor has the code of their workflow.
	Unserved Reason = "unserved"
	// AtLimit: the queue, or the partition, is at its limit.
	AtLimit          Reason = "queue_limit"
	PartitionAtLimit Reason = "partition_limit"
	// ByRate: the rate lets none begin until a certain moment.
	ByRate Reason = "rate"
	// Free: nothing holds them up but that no executor has taken them yet.
	Free Reason = "next"
)

// String says the reason to people; its words for programs are string(r).
func (r Reason) String() string {
	switch r {
	case QueuePaused:
		return "the queue is paused"
	case Unserved:
		return "no live process serves the workflow"
	case AtLimit:
		return "as many run as the queue allows"
	case PartitionAtLimit:
		return "as many run as the queue allows of the partition"
	case ByRate:
		return "the rate of the queue lets none begin yet"
	case Free:
		return "a process is to take it"
	}
	return string(r)
}

// A LineWait is a number of runs that are in line for the same reason.
type LineWait struct {
	Reason    Reason
	Partition string     // PartitionAtLimit: which one
	Runs      int64      // of the queue
	Until     store.Time // ByRate: when the next one begins
}

// WaitsOf says why the runs of a queue are in line, each run for one reason. unserved is how
// many of them belong to workflows that no live executor serves.
//
// For example, of a queue of 2 places that both are taken, with 5 runs in line, it says
// that 5 wait because the queue is at its limit. With a place free and the 3 of acme at
// their own limit, it says that 3 wait because of that, and 2 for an executor.
func WaitsOf(q *store.QueueState, unserved int64) []LineWait {
	var list []LineWait
	rest := q.InLine
	take := func(w LineWait) {
		if w.Runs = min(w.Runs, rest); w.Runs > 0 {
			list = append(list, w)
			rest -= w.Runs
		}
	}
	if q.Paused {
		take(LineWait{Reason: QueuePaused, Runs: rest})
	}
	take(LineWait{Reason: Unserved, Runs: unserved})
	if full(q.Placed, q.Max) {
		take(LineWait{Reason: AtLimit, Runs: rest})
	}
	for _, p := range q.Partitions {
		if full(p.Placed, q.MaxPerPartition) {
			take(LineWait{Reason: PartitionAtLimit, Partition: p.Name, Runs: p.InLine})
		}
	}
	if q.NextAt != 0 {
		take(LineWait{Reason: ByRate, Runs: rest, Until: q.NextAt})
	}
	take(LineWait{Reason: Free, Runs: rest})
	return list
}

func full(placed int64, limit int) bool { return limit > 0 && placed >= int64(limit) }

// A Line says where a run stands in line for a place in its queue.
type Line struct {
	Queue     store.QueueState
	Partition string
	Position  int64 // among the runs of its partition that are due; 1: it is next of them
	Served    bool  // a live executor serves its workflow and version
}

// Reason returns what keeps the run in line, and if that is the rate, until when.
func (l *Line) Reason() (Reason, store.Time) {
	q := &l.Queue
	switch {
	case q.Paused:
		return QueuePaused, 0
	case !l.Served:
		return Unserved, 0
	case full(q.Placed, q.Max):
		return AtLimit, 0
	case full(l.partition().Placed, q.MaxPerPartition):
		return PartitionAtLimit, 0
	case q.NextAt != 0:
		return ByRate, q.NextAt
	}
	return Free, 0
}

// partition returns what is known of the partition of the run.
func (l *Line) partition() store.PartitionState {
	for _, p := range l.Queue.Partitions {
		if p.Name == l.Partition {
			return p
		}
	}
	return store.PartitionState{Name: l.Partition}
}

// Place returns where the run stands: "3rd in line of emails, partition acme".
func (l *Line) Place() Text {
	t := say(strong(Ordinal(l.Position)+" in line"), " of ", code(l.Queue.Name))
	if l.Partition != "" {
		t = append(t, say(", partition ", code(l.Partition))...)
	}
	return t
}

// Text says where the run stands and all that holds it up, as seen from a moment: "3rd in line
// of emails; 2 of 2 run; the next begins 12:00:05 by the rate of 10 in 1 min".
func (l *Line) Text(now store.Time, zone *time.Location) Text {
	q := &l.Queue
	t := l.Place()
	add := func(parts ...any) { t = append(append(t, Span{Text: "; "}), say(parts...)...) }
	if q.Paused {
		add(pausedText(q))
	}
	if full(q.Placed, q.Max) {
		add(fullText(q))
	}
	if p := l.partition(); full(p.Placed, q.MaxPerPartition) {
		add(partitionText(q, p.Name))
	}
	if q.NextAt > now {
		add(rateText(q, q.NextAt, now, zone))
	}
	if why, _ := l.Reason(); why == Free {
		add("a process is to take it")
	}
	return t
}

// Text says why these runs of q are in line, as seen from a moment: "2 of 2 run".
func (w *LineWait) Text(q *store.QueueState, now store.Time, zone *time.Location) Text {
	switch w.Reason {
	case QueuePaused:
		return pausedText(q)
	case Unserved:
		return say("no live process serves ", them(w.Runs))
	case AtLimit:
		return fullText(q)
	case PartitionAtLimit:
		return partitionText(q, w.Partition)
	case ByRate:
		return rateText(q, w.Until, now, zone)
	}
	return say("a process is to take ", them(w.Runs))
}

func them(n int64) string {
	if n == 1 {
		return "it"
	}
	return "them"
}

func pausedText(q *store.QueueState) Text {
	t := say("the queue is paused")
	if q.Reason != "" {
		t = append(t, say(": ", quote(q.Reason))...)
	}
	return t
}

func fullText(q *store.QueueState) Text {
	return say(strong(fmt.Sprintf("%d of %d", q.Placed, q.Max)), " run")
}

func partitionText(q *store.QueueState, name string) Text {
	limit := fmt.Sprintf(" at its limit of %d", q.MaxPerPartition)
	if name == "" {
		return say("the unnamed partition is" + limit)
	}
	return say(code(name), " is"+limit)
}

func rateText(q *store.QueueState, next, now store.Time, zone *time.Location) Text {
	return say("the next begins ", moment(next, now, zone), " by the rate of ", RateText(q.Queue))
}

// RateText says how many runs of a queue may begin: "10 in 1 min"; empty: any number.
func RateText(q store.Queue) string {
	if q.Rate == 0 {
		return ""
	}
	return count.Number(q.Rate) + " in " + Duration(q.Per)
}

// Ordinal returns "1st", "2nd", "3rd", "4th", "11th", "21st".
func Ordinal(n int64) string {
	end := "th"
	if tens := n % 100; tens < 11 || tens > 13 {
		switch n % 10 {
		case 1:
			end = "st"
		case 2:
			end = "nd"
		case 3:
			end = "rd"
		}
	}
	return count.Number(n) + end
}
