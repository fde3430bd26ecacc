package everystore_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/test/tried"
)

// The shapes of workflows stand in the tables of steps_test.go, waits_test.go,
// structure_test.go, undo_test.go, start_test.go, talk_test.go and
// renewal_test.go. Each is run on every backend: first
// undisturbed, which tells what it records, and then, for each thing it records,
// killed just before that is written and just after, and continued by another
// process on the same data; and then the same with a second kill as soon as the
// other process has written anything, which is its claim where it needs one. On a
// database, what only memory need show is left to make soak.
//
// However it is killed, it must come to the same outcome with the same events
// and effects as undisturbed; audit_test.go looks at what it leaves.
//
// To add a shape, for a new feature say:
//
//  1. Write a function that takes a *life and returns workflows, the first of
//     which is started with the input 7 as the run l.trial.id. Ids of runs that
//     it chooses begin with that. It is called once for each process.
//  2. Let every body call l.did(ctx), and every piece of code outside of steps
//     that runs again until something is recorded l.effect: so it is seen what
//     runs twice. A body that waits must heed its context.
//  3. What comes from outside (signals, cancels, pauses, requests) belongs into script. It runs in every life, from the beginning,
//     beside the workflow: let it wait with l.until for what it follows on, and
//     repeat itself harmlessly. A label such as "r wait_requested approve" is an
//     event, "mail to r: signal approve 1" a message; a failing test prints
//     them.
//  4. Keep it small: each write costs three trials or four, and each trial of a sleep
//     takes as long. Sleep for a short pause where the sleep is to end, for an
//     hour where it is to be cut off.
//  5. Spell its outcome out in want.
//
// If a new kind of event is the outcome of an effect, name it in trial.look; if
// it opens or closes something, in trial.checkOpen.
type shape struct {
	name   string
	define func(l *life) []durable.Definition
	// start are options of the root's start, the same in every life.
	start []durable.StartOption
	// around wraps the attempts of every body; nil: nothing does.
	around func(ctx context.Context, a durable.AttemptInfo, next func(context.Context) error) error
	// script is what the world around does; nil: nothing.
	script func(ctx context.Context, l *life) error
	// recovered looks at the report of Recover, in every life; nil: nothing.
	recovered func(l *life, r durable.Report) error
	// want is the outcome, "result, error". There may be several where that
	// depends on the moment of the kill (see races).
	want []string
	// wide is how many effects can be under way at once; 0: 1.
	wide int
	// once are effects that must not happen twice although nobody recorded
	// their outcome.
	once []string
	// leaves are the keys of waits that are left open by design.
	leaves []string
	// may are labels of events, and effects, that are there or not depending on
	// the moment.
	may []string
	// unloadsEverywhere: it is among those that are unloaded at every wait also
	// in databases, where a trial costs most.
	unloadsEverywhere bool
	// races: which events and effects there are depends on the moment. The
	// outcome is then one of want, and not every event is met by each trial.
	races  bool
	errors []durable.ErrorKind
}

// short is the length of a sleep that ends, and moment one that a body takes.
const (
	short  = 20 * time.Millisecond
	moment = 2 * time.Millisecond
)

// step is a step that returns a value at once.
func (l *life) step(ctx context.Context, name, v string) (string, error) {
	return durable.Step(ctx, name, func(ctx context.Context) (string, error) { l.did(ctx); return v, nil })
}

// tester lets a trial fail its test from a goroutine of its own.
type tester struct {
	t      *testing.T
	what   string
	failed atomic.Bool
}

func (x *tester) Errorf(format string, args ...any) {
	x.failed.Store(true)
	x.t.Errorf("%s: %s", x.what, fmt.Sprintf(format, args...))
}

func (x *tester) FailNow() { runtime.Goexit() }

// tally counts over the shapes of one backend.
type tally struct{ points, trials, missed atomic.Int64 }

func TestEveryShapeKilledAtAnyWriteOnAnyStoreEndsAsIfItHadNotBeen(t *testing.T) {
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) { b.killAnywhere(t, shapes()) })
	}
}

// The same once more with goroutines that end at every wait, so that what comes
// next finds a run which must be loaded first: the outcome, the events and the
// effects are those of a run that stays in memory.
func TestEveryShapeThatIsUnloadedAtEveryWaitEndsAsIfItHadNotBeen(t *testing.T) {
	for _, b := range backends {
		b.unloads = true
		list := shapes()
		// Unloading is the engine's: these few show that each database keeps what it needs.
		if !b.virtual && !soaking() {
			list = slices.DeleteFunc(list, func(s *shape) bool { return !s.unloadsEverywhere })
		}
		t.Run(b.name, func(t *testing.T) { b.killAnywhere(t, list) })
	}
}

// killAnywhere does that with each of the shapes.
func (b backend) killAnywhere(t *testing.T, list []*shape) {
	var sum tally
	began := time.Now()
	leftOut := false // for want of a server
	t.Run("shapes", func(t *testing.T) {
		defer func() { leftOut = t.Skipped() }()
		var shared *pool
		if !b.virtual {
			shared = newPool(t, b)
			t.Cleanup(func() { shared.close(t) })
		}
		for _, s := range list {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				b.run(t, func(t *testing.T) {
					p := shared
					if p == nil { // nothing may be shared between bubbles
						p = newPool(t, b)
						defer p.close(t)
					}
					s.killAnywhere(t, b, p, &sum)
				})
			})
		}
	})
	if leftOut {
		return
	}
	t.Logf("%d shapes, %d kill points, %d trials, %d where the moment had passed; %s",
		len(list), sum.points.Load(), sum.trials.Load(), sum.missed.Load(), time.Since(began).Round(time.Millisecond))
	require.NotZero(t, sum.points.Load())
	tried.Say(t, "shapes", "store=%s shapes=%d points=%d trials=%d wrong=0", b.name, len(list), sum.points.Load(), sum.trials.Load())
}

func shapes() []*shape {
	return slices.Concat(stepShapes(), waitShapes(), structureShapes(), undoShapes(), startShapes(), talkShapes(), renewalShapes(), declaredShapes())
}

// killAnywhere runs the shape undisturbed, and then killed at each of its
// points.
func (s *shape) killAnywhere(t *testing.T, b backend, p *pool, sum *tally) {
	var clean result
	s.alone(t, p, "undisturbed", func(t require.TestingT, d *data) {
		clean = s.try(t, b, d)
		require.Contains(t, s.want, clean.outcome)
	})
	if t.Failed() {
		return
	}
	var missed sync.Map
	jobs := make(chan func())
	var workers sync.WaitGroup
	for range b.trials {
		workers.Go(func() {
			for job := range jobs {
				job()
			}
		})
	}
	points := 0
	for i, l := range b.points(clean.writes) {
		for _, after := range []bool{false, true} {
			// A database holds the same just before a write as just after the one before it.
			// What the process has done in between is the same on every store: memory has it.
			if !after && i > 0 && !b.virtual && !soaking() {
				continue
			}
			points++
			first := death{label: l, after: after}
			ways := [][]death{{first}}
			if after || b.virtual {
				ways = append(ways, []death{first, {nth: 1, after: true}}) // and again in its recovery
			}
			for _, deaths := range ways {
				jobs <- func() {
					if !s.killAt(t, b, p, clean, deaths, sum) {
						missed.Store(l, true)
					}
				}
			}
		}
	}
	close(jobs)
	workers.Wait()
	require.NotZero(t, points)
	sum.points.Add(int64(points))
	for l := range missed.Range {
		l, _, _ := strings.Cut(l.(string), " #") // the second one of a life is no surer than the first
		require.True(t, s.races || strings.HasPrefix(l, rowLabel) || claims(l) || slices.Contains(s.may, l), "the point of %q was not met", l)
	}
}

// soaking reports whether this is the long form of the tests.
func soaking() bool { return os.Getenv("DURABLE_SOAK") != "" }

// claims reports whether a label is of a claim. By which of its two events a run
// is claimed, and how often, depends on the moment.
func claims(label string) bool {
	return strings.HasSuffix(label, " "+string(store.RunResumed)) || strings.HasSuffix(label, " "+string(store.RunClaimed))
}

// points returns the labels at which a process is to be killed: all of them
// where that costs nothing, else one of each write.
func (b backend) points(writes [][]string) (labels []string) {
	for _, w := range writes {
		switch {
		case b.virtual:
			labels = append(labels, w...)
		case len(w) > 0:
			labels = append(labels, w[0])
		}
	}
	return labels
}

// killAt tries one way to be killed, and reports whether the first death came to
// pass.
func (s *shape) killAt(t *testing.T, b backend, p *pool, clean result, deaths []death, sum *tally) (died bool) {
	s.alone(t, p, fmt.Sprint(deaths), func(t require.TestingT, d *data) {
		got := s.try(t, b, d, deaths...)
		sum.trials.Add(1)
		if died = got.died[0]; !died {
			sum.missed.Add(1)
		}
		require.Contains(t, s.want, got.outcome)
		if !s.races {
			require.Equal(t, clean.outcome, got.outcome)
			require.Equal(t, s.sure(clean.events), s.sure(got.events))
			require.Equal(t, s.sure(clean.effects), s.sure(got.effects))
		}
	})
	return died
}

// alone runs a trial with data that nobody else has, and gives it back if it is
// in order. It returns when the trial is over, however that was.
func (s *shape) alone(t *testing.T, p *pool, what string, try func(t require.TestingT, d *data)) {
	x := &tester{t: t, what: what}
	var one sync.WaitGroup
	one.Go(func() {
		d := p.get(x)
		try(x, d)
		if !x.failed.Load() {
			p.put(d)
		}
	})
	one.Wait()
}

// sure returns what is there in any case, sorted.
func (s *shape) sure(set map[string]bool) []string {
	var list []string
	for e := range set {
		if !slices.Contains(s.may, e) {
			list = append(list, e)
		}
	}
	slices.Sort(list)
	return list
}
