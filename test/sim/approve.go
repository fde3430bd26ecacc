package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// What people do to approvals.
const (
	AnswerAsked   Deed = "answer asked"   // each approval that is asked for
	AnswerTwice   Deed = "answer twice"   // with a yes and a no, in two processes at once
	AnswerUnasked Deed = "answer unasked" // each approval that the run may come to, by the name of its signal
	AnswerLate    Deed = "answer late"    // what an earlier act has listed; if there is none, what is asked is listed
)

// answerDeeds lists them.
func answerDeeds() []Deed { return []Deed{AnswerAsked, AnswerTwice, AnswerUnasked, AnswerLate} }

// A verdict is what a run waits for that asks for an approval.
type verdict struct {
	Approved bool
	By       string // names the answer
}

// said is what an answer with this number looks like in a run's output.
func (v verdict) said() string { return fmt.Sprintf("%s: %t", v.By, v.Approved) }

// verdictOf returns the verdict of the n-th answer: every other one is a yes.
func verdictOf(n int) verdict { return verdict{n%2 == 1, fmt.Sprint("a", n)} }

// promptOf is what a person is asked by the node at a path.
func promptOf(path string) string { return "may " + path + "?" }

// An answer is one that somebody gives to an approval.
type answer struct {
	run, name string
	asked     int64 // the event of the wait that it is for; 0: for any of its name
	arrivedAt store.Time
	told      bool // that it counts
	tooLate   bool // told so
}

// A question is a wait for an approval.
type question struct {
	key, name string
	asked     int64 // its event
	answer    string
	until     store.Time
	open      bool
	took      int // the answer that it was given; 0: none
}

// deskBook is what is known of approvals outside of the store.
type deskBook struct {
	mu        sync.Mutex
	answers   []*answer              // the n-th has the number n+1
	arrived   map[string][]int       // those that a run has and has not taken, in the order of the store
	questions map[string][]*question // of a run, in the order of the store
	listed    []durable.Approval     // at the last act
}

func newDeskBook() *deskBook {
	return &deskBook{arrived: map[string][]int{}, questions: map[string][]*question{}}
}

// gives takes note of an answer that is about to be given.
func (b *deskBook) gives(a *answer) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answers = append(b.answers, a)
	return len(b.answers)
}

// givesA gives a number to an answer that is a yes, or to one that is a no.
func (b *deskBook) givesA(yes bool, a *answer) (n int) {
	if n = b.gives(a); verdictOf(n).Approved != yes {
		n = b.gives(a)
	}
	return n
}

// find returns the question that an event has asked. The mutex is held.
func (b *deskBook) find(run string, asked int64) *question {
	for _, q := range b.questions[run] {
		if q.asked == asked {
			return q
		}
	}
	return nil
}

// asking returns the open question with a key. The mutex is held.
func (b *deskBook) asking(run, key string) *question {
	for _, q := range b.questions[run] {
		if q.open && q.key == key {
			return q
		}
	}
	return nil
}

// wants reports whether an answer may be given to a question.
func (q *question) wants(a *answer) bool { return a.name == q.name || a.name == q.answer }

// foreseen reports whether the book knows all about a run: nobody has changed its history, or
// copied it.
func (s *sim) foreseen(run string) bool {
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	return !s.ledger.run(run).meddled && !strings.HasPrefix(run, "f-")
}

var numberOfAnswer = regexp.MustCompile(`"By":"a(\d+)"`)

// answerIn returns the number of the answer that is in a payload; 0: none.
func answerIn(payload []byte) int {
	found := numberOfAnswer.FindSubmatch(payload)
	if found == nil {
		return 0
	}
	n, _ := strconv.Atoi(string(found[1]))
	return n
}

// mailed notes the answers among the messages of a change that is durable now.
func (b *deskBook) mailed(s *sim, sent []store.Message) {
	for i := range sent {
		m := &sent[i]
		n := answerIn(m.Payload)
		if m.Kind != store.KindSignal || n == 0 {
			continue
		}
		b.mu.Lock()
		if a := b.answers[n-1]; a.arrivedAt == 0 {
			a.arrivedAt = s.now()
			b.arrived[m.To] = append(b.arrived[m.To], n)
		}
		b.mu.Unlock()
	}
}

// recorded follows the approvals of a run by its events.
func (b *deskBook) recorded(s *sim, run string, e *store.Event) {
	switch e.Type {
	case store.WaitRequested, store.SignalReceived, store.WaitTimedOut, store.WaitClosed, store.WorkflowContinued:
	default:
		return
	}
	known := s.foreseen(run)
	b.mu.Lock()
	defer b.mu.Unlock()
	var said struct {
		Name, Prompt string
		Until        store.Time
	}
	switch _ = json.Unmarshal(e.Data, &said); e.Type {
	case store.WaitRequested:
		if said.Prompt == "" {
			return
		}
		if said.Prompt != promptOf(said.Name) {
			s.fail("%s asks %q for %s", run, said.Prompt, said.Name)
		}
		b.questions[run] = append(b.questions[run], &question{key: e.Key, name: said.Name, asked: e.Seq, until: said.Until, answer: durable.WaitKey(e.Key, e.Branch), open: true})
	case store.SignalReceived:
		n := answerIn(e.Payload)
		if n == 0 {
			return
		}
		q := b.asking(run, e.Key)
		if q != nil {
			q.open, q.took = false, n
		}
		if known {
			b.askTaken(s, run, n, q)
		}
		b.arrived[run] = slices.DeleteFunc(b.arrived[run], func(m int) bool { return m == n })
	case store.WaitTimedOut:
		q := b.asking(run, e.Key)
		if q == nil {
			return
		}
		q.open = false
		if q.until == 0 {
			s.fail("%s: the approval of %s has ended by itself, and has no time limit", run, q.key)
		}
		for _, n := range b.arrived[run] {
			if a := b.answers[n-1]; known && b.isFor(run, q, a) && a.arrivedAt < q.until {
				s.fail("%s: the approval of %s has timed out, and its answer a%d had come %s before its end", run, q.key, n, q.until.Sub(a.arrivedAt))
			}
		}
	case store.WaitClosed:
		if q := b.asking(run, e.Key); q != nil {
			q.open = false
			if known {
				s.fail("%s: the approval of %s was closed: %s", run, q.key, e.Data)
			}
		}
	case store.WorkflowContinued:
		for _, q := range b.questions[run] {
			q.open = false
		}
	}
}

// isFor reports whether an answer is for this question and for no other that is open. The mutex
// is held.
func (b *deskBook) isFor(run string, q *question, a *answer) bool {
	if a.name == q.answer {
		return true
	}
	rivals := slices.ContainsFunc(b.questions[run], func(o *question) bool { return o.open && o != q && o.name == q.name })
	return a.name == q.name && !rivals
}

// askTaken checks that a run takes the answer that came first. q is nil if the answer was there
// before the run asked. The mutex is held.
func (b *deskBook) askTaken(s *sim, run string, n int, q *question) {
	a := b.answers[n-1]
	at := slices.Index(b.arrived[run], n)
	switch {
	case a.run != run:
		s.fail("%s takes the answer a%d, which was given to %s", run, n, a.run)
	case at < 0:
		s.fail("%s takes the answer a%d, which has not come, or was taken before", run, n)
	case a.tooLate:
		s.fail("%s takes the answer a%d, and who gave it was told that it is too late", run, n)
	case q == nil && a.asked != 0:
		s.fail("%s takes the answer a%d to the question of event %d for that to one that it has not asked", run, n, a.asked)
	case q == nil:
	case !q.wants(a):
		s.fail("%s takes the answer a%d to %s for that to %s", run, n, a.name, q.key)
	case a.asked != 0 && a.asked != q.asked:
		s.fail("%s takes the answer a%d to the question of event %d for that to the one of event %d", run, n, a.asked, q.asked)
	default:
		for _, m := range b.arrived[run][:at] {
			if b.isFor(run, q, b.answers[m-1]) && (b.answers[m-1].asked == 0 || b.answers[m-1].asked == q.asked) {
				s.fail("%s: %s takes the answer a%d, and a%d came before it", run, q.key, n, m)
			}
		}
	}
}

// approve asks for an approval.
func (x *pass) approve(ctx context.Context, scope, path string, n *Node) (string, error) {
	asked := x.firstAsked(scope, path)
	o := []durable.AwaitOption{durable.Prompt(promptOf(path))}
	if n.For > 0 {
		o = append(o, durable.Timeout(n.For))
	}
	v, err := durable.Await[verdict](ctx, path, o...)
	if errors.Is(err, durable.ErrTimeout) {
		x.askWait(path, asked, n.For)
		if n.For == 0 {
			x.sim.fail("%s: the approval at %s has timed out, and has no time limit", x.run, path)
		}
		return "timeout", nil
	} else if err != nil {
		return "", err
	}
	b := x.sim.desk
	b.mu.Lock()
	defer b.mu.Unlock()
	number, _ := strconv.Atoi(strings.TrimPrefix(v.By, "a"))
	switch {
	case number < 1 || number > len(b.answers):
		x.sim.fail("%s: the approval at %s has the answer %q, which nobody has given", x.run, path, v.said())
	case v != verdictOf(number):
		x.sim.fail("%s: the approval at %s has the answer %q, and that was %q", x.run, path, v.said(), verdictOf(number).said())
	case b.answers[number-1].arrivedAt == 0:
		x.sim.fail("%s: the approval at %s has the answer %q, which is not recorded", x.run, path, v.said())
	}
	return v.said(), nil
}

// operateDesk carries out an act on approvals.
func (s *sim) operateDesk(ctx context.Context, op *operate.Operator, a *Act, id string) error {
	if a.Do == AnswerUnasked {
		var errs []error
		for _, path := range s.world.Program.paths(Approve) {
			n := s.desk.gives(&answer{run: id, name: path})
			errs = append(errs, durable.Signal(ctx, id, path, verdictOf(n)))
		}
		return errors.Join(errs...)
	}
	s.desk.mu.Lock()
	open := slices.Clone(s.desk.listed)
	s.desk.mu.Unlock()
	if a.Do != AnswerLate || len(open) == 0 {
		had := s.answered()
		var err error
		if open, err = op.Approvals(ctx); err != nil {
			return err
		}
		for _, it := range open {
			if had[fmt.Sprint(it.RunID, " ", it.Seq)] && s.foreseen(it.RunID) {
				s.fail("%s of %s is listed, and has its answer", it.Key, it.RunID)
			}
		}
		s.desk.mu.Lock()
		s.desk.listed = slices.Clone(open)
		s.desk.mu.Unlock()
		if a.Do == AnswerLate {
			return nil
		}
	}
	for _, it := range open {
		if a.Do == AnswerTwice {
			s.background(func() {
				if p := s.live(a.Run + 1); p != nil {
					ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
					defer cancel()
					_ = s.answers(ctx, operate.On(p.engine()), it, false)
				}
			})
		}
		if err := s.answers(ctx, op, it, a.Do == AnswerTwice || a.Run%2 == 0); err != nil {
			return err
		}
	}
	return nil
}

// answered returns the questions that have an answer, or have ended.
func (s *sim) answered() map[string]bool {
	s.desk.mu.Lock()
	defer s.desk.mu.Unlock()
	all := map[string]bool{}
	for run, qs := range s.desk.questions {
		open := s.desk.open(run)
		for _, q := range qs {
			all[fmt.Sprint(run, " ", q.asked)] = !slices.Contains(open, *q)
		}
	}
	return all
}

// answers answers an approval, and judges what is said to that.
func (s *sim) answers(ctx context.Context, op *operate.Operator, it durable.Approval, yes bool) error {
	b := s.desk
	mine := &answer{run: it.RunID, name: it.Answer, asked: it.Seq}
	n := b.givesA(yes, mine)
	value, err := it.Verdict(yes, verdictOf(n).By, "")
	if err != nil {
		s.fail("%s: Verdict of %s: %v", it.RunID, it.Key, err)
		return err
	}
	known := s.foreseen(it.RunID)
	b.mu.Lock()
	q := b.find(it.RunID, it.Seq)
	before := question{open: true}
	if q != nil {
		before = *q
	}
	b.mu.Unlock()
	err = op.Answer(ctx, it, value)
	h, gone := s.data.Load(ctx, it.RunID, store.Cursor{NoEvents: true})
	ending := gone != nil || h.Run.CancelAsked || h.Run.Status.Terminal()
	s.note("a%d to %s of %s: %v", n, it.Key, it.RunID, err)
	if known = known && s.foreseen(it.RunID); !known || q == nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var late *operate.TooLateError
	switch {
	case err == nil && !before.open && before.took == 0:
		s.fail("%s: the answer a%d to %s is said to count, and the question had ended", it.RunID, n, it.Key)
	case err == nil && !before.open:
		s.fail("%s: the answer a%d to %s is said to count, and a%d was the first", it.RunID, n, it.Key, before.took)
	case err == nil && q.took != 0 && q.took != n:
		s.fail("%s: the answer a%d to %s is said to count, and the run was told a%d", it.RunID, n, it.Key, q.took)
	case err == nil:
		mine.told = true
	case errors.As(err, &late) && q.took == n:
		s.fail("%s: the answer a%d to %s, which was the first, is said to be too late", it.RunID, n, it.Key)
	case errors.As(err, &late) && q.open && !ending && !slices.ContainsFunc(b.arrived[it.RunID], func(m int) bool { return m != n && q.wants(b.answers[m-1]) }):
		s.fail("%s: the answer a%d to %s is said to be too late, and it waits", it.RunID, n, it.Key)
	case errors.As(err, &late):
		mine.tooLate = true
	}
	return err
}

// answerAll answers what is asked for at the end of a world.
func (s *sim) answerAll(ctx context.Context, op *operate.Operator, run string) {
	open, err := op.ApprovalsOf(ctx, run)
	if err != nil {
		s.note("approvals of %s: %v", run, err)
	}
	for _, it := range open {
		_ = s.answers(ctx, op, it, true)
	}
}

// bare is the name of an answer without the branch, which a question that a jump has kept changes.
func bare(answer string) string { return answer[:strings.LastIndexByte(answer, '@')+1] }

// restored checks what Recover reports of approvals: was is what waited before, without an
// executor.
func (s *sim) restored(rep *durable.Report, was map[string][]question) {
	said := map[string]bool{}
	s.desk.mu.Lock()
	for _, it := range rep.Approvals {
		said[fmt.Sprint(it.RunID, " ", it.Seq)] = true
		q := s.desk.find(it.RunID, it.Seq)
		if q == nil || q.key != it.Key || q.name != it.Name || bare(q.answer) != bare(it.Answer) || q.until != it.Until || it.Prompt != promptOf(q.name) {
			s.fail("Recover restores an approval of %s, %+v, and asked for is %+v", it.RunID, it, q)
		}
	}
	s.desk.mu.Unlock()
	is := s.unanswered()
	for run, qs := range was {
		for _, q := range qs {
			if !rep.Partial && slices.Contains(is[run], q) && !said[fmt.Sprint(run, " ", q.asked)] {
				s.fail("Recover does not report that %s of %s waits for an answer", q.key, run)
			}
		}
	}
}

// unanswered returns the questions that runs without an executor ask, and to which there is no
// answer.
func (s *sim) unanswered() map[string][]question {
	all := map[string][]question{}
	if !s.world.Program.has(Approve) {
		return nil
	}
	rows := s.rows()
	for i := range rows {
		r := &rows[i]
		if r.Status != store.Waiting || r.Owner != "" || !s.foreseen(r.ID) {
			continue
		}
		s.desk.mu.Lock()
		all[r.ID] = s.desk.open(r.ID)
		s.desk.mu.Unlock()
	}
	return all
}

// open returns the questions of a run to which there is no answer. The mutex is held.
func (b *deskBook) open(run string) (all []question) {
	for _, q := range b.questions[run] {
		if q.open && !slices.ContainsFunc(b.arrived[run], func(n int) bool { return q.wants(b.answers[n-1]) }) {
			all = append(all, *q)
		}
	}
	return all
}

// askDesk checks, when no run has anything to do, that people see what they are asked, and nothing
// else.
func (s *sim) askDesk(rows []store.Run) {
	p := s.live(0)
	if p == nil || !s.world.Program.has(Approve) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	listed, err := operate.On(p.engine()).Approvals(ctx)
	if err != nil {
		s.fail("Approvals: %v", err)
		return
	}
	for i := range rows {
		r := &rows[i]
		if r.Status != store.Waiting || r.Paused || !s.foreseen(r.ID) {
			continue
		}
		s.desk.mu.Lock()
		open := s.desk.open(r.ID)
		s.desk.mu.Unlock()
		var have []int64
		for _, it := range listed {
			if it.RunID == r.ID {
				have = append(have, it.Seq)
			}
		}
		var want []int64
		for _, q := range open {
			want = append(want, q.asked)
		}
		slices.Sort(have)
		if !slices.Equal(have, want) {
			s.fail("%s asks for approvals with the events %v, and listed are %v", r.ID, want, have)
		}
	}
}

// approvals adds approvals to a program, and people who answer them.
func (g *Generator) approvals(w *World) {
	limit := func() time.Duration { return pick(g, 0, 0, 0, time.Second, 15*time.Second, 2*time.Minute) }
	first := Program{{Do: Approve, For: limit()}}
	switch g.rng.IntN(7) {
	case 0: // several of one name
		first = Program{{Do: pick(g, Map, MapSeq), Max: 1 + g.rng.IntN(3), Body: Program{{Do: Approve, For: limit()}}}}
	case 1: // beside other waits
		first = Program{{Do: pick(g, Go, First), Body: Program{{Do: Approve, For: limit()}, {Do: pick(g, Sleep, Await, Approve), For: pick(g, time.Second, 40*time.Second)}}}}
	case 2: // in every generation
		if !w.Program.has(Undo) && !w.Program.has(Renew) && w.Release == Unchanged {
			first = append(first, Node{Do: Renew, Max: 2})
		}
	case 3: // of a child
		first = Program{{Do: Child, Max: 1, Body: first}}
	case 4: // an answer just before the time limit, which its executor cannot read
		w.Program = append(Program{{Do: Approve, For: 15 * time.Second}}, w.Program...)
		w.Engines = max(w.Engines, 2)
		w.Acts = append(w.Acts, Act{On: "wait_requested", Nth: 1, Do: pick(g, AnswerAsked, AnswerUnasked), Run: 1, After: pick(g, 10*time.Second, 14*time.Second)})
		w.Faults = append(w.Faults, Fault{On: AfterAct, Nth: 1 + g.rng.IntN(6), Do: pick(g, Restart, Restart, Cut), For: pick(g, 20*time.Second, 45*time.Second, 90*time.Second)})
		return
	case 5: // answers in two ways while it stands still
		w.Program = append(first, w.Program...)
		for _, d := range []Deed{PauseRun, pick(g, answerDeeds()...), pick(g, answerDeeds()...), pick(g, answerDeeds()...)} {
			w.Acts = append(w.Acts, Act{Do: d, After: time.Duration(len(w.Acts)+1) * time.Second})
		}
		w.Acts = append(w.Acts, Act{Do: UnpauseRun, After: 20 * time.Second})
		return
	}
	if g.chance(30) {
		first = append(Program{{Do: pick(g, Step, Sleep, Relaxed, Await), For: pick(g, time.Second, 5*time.Second)}}, first...)
	}
	w.Program = append(first, w.Program...)
	for range g.rng.IntN(3) + 1 {
		a := Act{Do: pick(g, answerDeeds()...), Run: g.rng.IntN(2), After: pick(g, 0, 0, 50*time.Millisecond, time.Second, 3*time.Second, 14*time.Second, 40*time.Second)}
		if g.chance(70) {
			a.On, a.Nth = pick(g, "wait_requested", "wait_requested", "signal_received", "wait_timed_out", "workflow_created", "workflow_continued", AFault), pick(g, 1, 1, 2)
		}
		w.Acts = append(w.Acts, a)
	}
	if g.chance(30) {
		w.Faults = append(w.Faults, Fault{On: pick(g, "send signal", "signal_received", "wait_requested", "wait_timed_out"), Nth: pick(g, 1, 1, 2, 3), Do: pick(g, harms()...), For: pick(g, 1500*time.Millisecond, 20*time.Second, 90*time.Second)})
	}
	w.Program.oneAsDerived()
}
