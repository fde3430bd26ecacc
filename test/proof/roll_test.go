package proof_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/test/tried"
)

// operations are the roles of children in the tests of operation.
var operations = map[string]func(st store.Store, o orders) error{"crowd": crowd, "walker": walkers, "shop": shop}

// soaking reports whether the tests of operation run as long as they are meant to.
func soaking() bool { return os.Getenv("DURABLE_SOAK") != "" }

// What the two versions of the shop keep: a registered type that has changed its
// unit.
type (
	billV1 struct{ Euros int }
	billV2 struct{ Cents int }
)

// shopFlows are the workflows of the shop in one of its two versions. Of each, a
// run waits in the middle, so that the other version replays what this one has
// recorded. The results are the same in both.
func shopFlows(version int) ([]*durable.Workflow[int, int], []durable.TypeDef) {
	two := version == 2
	step := func(ctx context.Context, name string) error {
		return durable.Do(ctx, name, func(context.Context) error { return nil })
	}
	wait := func(ctx context.Context) error {
		_, err := durable.Await[bool](ctx, "go")
		return err
	}
	// A change that the marker makes compatible.
	patched := durable.Define("patched", func(ctx context.Context, n int) (int, error) {
		if err := step(ctx, "take"); err != nil {
			return 0, err
		}
		if err := wait(ctx); err != nil {
			return 0, err
		}
		if two && durable.Patched(ctx, "check") {
			if err := step(ctx, "check"); err != nil {
				return 0, err
			}
		}
		return 100 * n, step(ctx, "give")
	})
	// A change that is not compatible.
	renamed := durable.Define("renamed", func(ctx context.Context, n int) (int, error) {
		first := "reserve"
		if two {
			first = "hold"
		}
		if err := step(ctx, first); err != nil {
			return 0, err
		}
		if err := wait(ctx); err != nil {
			return 0, err
		}
		return 100 * n, step(ctx, "charge")
	})
	// A change of data, with an upcaster.
	typed := durable.Define("typed", func(ctx context.Context, n int) (int, error) {
		if two {
			bill, err := durable.Step(ctx, "bill", func(context.Context) (billV2, error) { return billV2{100 * n}, nil })
			if err != nil {
				return 0, err
			}
			return bill.Cents, wait(ctx)
		}
		bill, err := durable.Step(ctx, "bill", func(context.Context) (billV1, error) { return billV1{n}, nil })
		if err != nil {
			return 0, err
		}
		return 100 * bill.Euros, wait(ctx)
	})
	types := []durable.TypeDef{durable.Type[billV1]("bill", 1)}
	if two {
		types = []durable.TypeDef{durable.Type[billV2]("bill", 2, durable.From(1, func(b billV1) (billV2, error) { return billV2{100 * b.Euros}, nil }))}
	}
	return []*durable.Workflow[int, int]{patched, renamed, typed}, types
}

var shopBuilds = []string{1: "one", 2: "two"}

// shop is the program in version o.Life. It starts o.New runs of each workflow and
// resumes those in o.Hold, and is ready when its new runs wait. On SIGTERM it
// closes its engine.
func shop(st store.Store, o orders) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	flows, types := shopFlows(o.Life)
	options := durable.Options{Types: types, Build: shopBuilds[o.Life], Logger: quiet(), Lease: o.Lease}
	for _, f := range flows {
		options.Workflows = append(options.Workflows, f)
	}
	eng, err := durable.Open(ctx, st, options)
	if err != nil {
		return err
	}
	ectx := durable.NewContext(context.Background(), eng)
	if _, err := durable.Recover(ectx); err != nil {
		return err
	}
	var started []string
	for n := range o.New {
		for _, f := range flows {
			id := fmt.Sprintf("%s by %d, %d", f.Name(), o.Life, n)
			if _, err := f.Start(ectx, id, n); err != nil {
				return err
			}
			started = append(started, id)
		}
	}
	for _, id := range strings.Split(o.Hold, "\n") {
		if id == "" {
			continue
		}
		if _, err := operate.On(eng).Resume(ectx, id, operate.ResumeOptions{}); err != nil {
			fmt.Println("refused", id, err)
		}
	}
	for some := range slices.Chunk(started, 100) {
		for {
			n, err := st.Count(ctx, store.Filter{IDs: some, Statuses: []store.Status{store.Waiting}}, "")
			if err != nil {
				return err
			}
			if int(n[""]) == len(some) {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	fmt.Println("ready")
	<-ctx.Done()
	return eng.Close()
}

// A roll is what an ordinary deployment does: the new version boots beside the old
// one, which is then ended. Here it goes forth, and back, while runs are under way.
func TestARollForthAndBackEndsEveryRunRightOrSaysWhatEndsIt(t *testing.T) {
	t.Parallel()
	each := 5 // of three workflows, in two versions
	if soaking() {
		each = 84
	}
	for name, how := range map[string]syscall.Signal{"SIGTERM": syscall.SIGTERM, "SIGKILL": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			backends(t, func(t *testing.T, o orders) {
				o.Role, o.Lease = "shop", time.Second
				st, err := openStore(o.Backend, o.DSN)
				require.NoError(t, err)
				defer st.Close()
				eng, err := durable.Open(t.Context(), st, durable.Options{Logger: quiet(), Lease: o.Lease})
				require.NoError(t, err)
				defer eng.Close()
				r := &roll{t: t, o: o, st: st, eng: eng, how: how, ctx: durable.NewContext(t.Context(), eng)}

				r.to(1, each, nil)
				r.to(2, each, nil)
				r.goOn(func(i int) bool { return i%2 == 0 })
				r.settle()
				r.to(1, 0, nil)
				r.goOn(func(i int) bool { return i%2 == 1 })
				r.settle()
				r.follow()
				r.results(6 * each)
				tried.Say(t, "rolls", "store=%s runs=%d wrong=0", o.Backend, 6*each)
			})
		})
	}
}

// roll is a deployment: one program is live but while it is exchanged.
type roll struct {
	t    *testing.T
	o    orders
	st   store.Store
	eng  *durable.Engine
	ctx  context.Context
	how  syscall.Signal
	live *child
}

// to exchanges the program for a version.
func (r *roll) to(version, begin int, resume []string) {
	o := r.o
	o.Life, o.New, o.Hold = version, begin, strings.Join(resume, "\n")
	next := start(r.t, o)
	next.await(r.t, "ready")
	if old := r.live; old != nil {
		require.NoError(r.t, old.Process.Signal(r.how))
		if err := old.Wait(); r.how == syscall.SIGTERM {
			require.NoError(r.t, err)
		}
	}
	r.live = next
}

func (r *roll) runs() []store.Run {
	var all []store.Run
	for f := (store.Filter{OldestFirst: true, Limit: 500}); ; {
		page, err := r.st.List(r.t.Context(), f)
		require.NoError(r.t, err)
		all = append(all, page.Runs...)
		if f.After = page.Next; f.After == "" {
			return all
		}
	}
}

// goOn sends some runs what they wait for.
func (r *roll) goOn(which func(i int) bool) {
	for i, run := range r.runs() {
		if which(i) && !run.Status.Terminal() {
			require.NoError(r.t, r.eng.Signal(r.ctx, run.ID, "go", true, durable.SignalID("go")))
		}
	}
}

// settle waits until nothing happens any more.
func (r *roll) settle() {
	quietSince, before := time.Now(), ""
	for end := time.Now().Add(2 * time.Minute); time.Since(quietSince) < 2*time.Second; time.Sleep(50 * time.Millisecond) {
		require.True(r.t, time.Now().Before(end), "it never comes to rest: %s", before)
		now, busy := "", false
		for _, run := range r.runs() {
			now += fmt.Sprintln(run.ID, run.Status, run.Code, run.Epoch, run.Inbox, run.Seen)
			busy = busy || run.Status == store.Running || run.Status == store.Resuming || run.Status == store.Pending
		}
		if busy || now != before {
			quietSince, before = time.Now(), now
		}
	}
}

var (
	namesBuild = regexp.MustCompile(`build "?(one|two)\b`)
	namesTypes = regexp.MustCompile(`a program whose Options.Types has version (1|2)\b`)
)

// namedBy returns the version of the shop that an advice names; 0: none.
func namedBy(advice string) int {
	if names := namesBuild.FindStringSubmatch(advice); names != nil {
		return slices.Index(shopBuilds, names[1])
	}
	if names := namesTypes.FindStringSubmatch(advice); names != nil {
		return int(names[1][0] - '0')
	}
	return 0
}

// follow does what the listing of stuck runs says, until there are none. Where the
// machine is so busy that a program loses its lease of a second, the one beside it,
// whose code does not fit, takes a run over and parks it again: the advice works if
// fewer runs are left by it.
func (r *roll) follow() {
	fewest, since := math.MaxInt, 0
	for round := 0; ; round++ {
		stuck, err := operate.On(r.eng).Stuck(r.ctx, 10_000)
		require.NoError(r.t, err)
		if len(stuck) == 0 {
			return
		}
		if len(stuck) < fewest {
			fewest, since = len(stuck), round
		}
		require.Less(r.t, round-since, 3, "the advice was followed, and did not work: %v", stuck)
		by := map[int][]string{}
		for _, s := range stuck {
			advice := s.Reason + "\n" + s.Next
			version := namedBy(advice)
			require.NotZero(r.t, version, "round %d: the advice for %s names no program: %s", round, s.RunID, advice)
			by[version] = append(by[version], s.RunID)
		}
		r.t.Logf("round %d: %d parked, by the program that the advice names: %d the first, %d the second; for example %q, next %q", round, len(stuck), len(by[1]), len(by[2]), stuck[0].Reason, stuck[0].Next)
		for _, version := range []int{2, 1} {
			if len(by[version]) > 0 {
				r.to(version, 0, by[version])
				r.settle()
			}
		}
	}
}

// results looks at what every run has come to.
func (r *roll) results(want int) {
	runs := r.runs()
	require.Len(r.t, runs, want)
	for _, run := range runs {
		require.Equal(r.t, store.Completed, run.Status, "%s: %s %s", run.ID, run.Code, run.Reason)
		var n, by int
		_, err := fmt.Sscanf(strings.TrimPrefix(run.ID, run.Workflow), " by %d, %d", &by, &n)
		require.NoError(r.t, err)
		h, err := durable.Ref[int, int](run.Workflow).Handle(r.ctx, run.ID)
		require.NoError(r.t, err)
		out, err := h.Wait(r.ctx)
		require.NoError(r.t, err)
		require.Equal(r.t, 100*n, out, run.ID)
	}
}
