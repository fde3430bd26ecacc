package proof_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/test/tried"
)

func init() { operations["mailer"] = mailer }

// queueRules are the queues of the mailer, one for each rule.
var queueRules = []durable.Queue{
	{Name: "limits", Max: 3, MaxPerPartition: 2, MaxPerProcess: 2},
	{Name: "naps", Max: 2}, // its runs wait, and hold their places
	{Name: "rate", Rate: 4, Per: 400 * time.Millisecond},
	{Name: "turns", Max: 2}, // of tenants
	{Name: "ranks", Max: 1},
	{Name: "once"},   // at most one run of a deduplication key
	{Name: "bounce"}, // debounced
}

const (
	bounceWait = 600 * time.Millisecond
	bounceMost = 3 * time.Second
)

// letter is the input of a run.
type letter struct {
	Queue, Part, Key string
	N                int // tells debounced starts apart
	Nap              time.Duration
	// Stuck is the process that does not send it as long as it lives.
	Stuck int
	// Until is a file without which it is not sent.
	Until string
}

// mailing is a workflow whose bodies tell the ledger when they are executed.
func mailing(o orders) *durable.Workflow[letter, int] {
	return durable.Define("mail", func(ctx context.Context, m letter) (int, error) {
		body := func(step string, last bool) error {
			return durable.Do(ctx, step, func(ctx context.Context) error {
				f := fact{What: "enter", Run: durable.RunID(ctx), Queue: m.Queue, Part: m.Part, Key: m.Key, Step: step, N: m.N}
				record(o, f)
				time.Sleep(2 * time.Millisecond)
				if m.Stuck == os.Getpid() {
					<-ctx.Done()
					return ctx.Err()
				}
				if m.Until != "" && last {
					if err := awaitFile(ctx, filepath.Join(o.Dir, m.Until)); err != nil {
						return err
					}
				}
				if last {
					f.What = "leave"
					record(o, f)
				}
				return nil
			})
		}
		if err := body("render", false); err != nil {
			return 0, err
		}
		if m.Nap > 0 {
			if err := durable.Sleep(ctx, m.Nap); err != nil {
				return 0, err
			}
		}
		return m.N, body("send", true)
	})
}

// awaitFile waits until a file is there.
func awaitFile(ctx context.Context, name string) error {
	for {
		if _, err := os.Stat(name); err == nil {
			return nil
		}
		select {
		case <-time.After(2 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// post starts a letter, and tells the ledger before and after.
func post(ctx context.Context, o orders, id string, m letter, as fact, options ...durable.StartOption) (string, error) {
	since := time.Now().UnixMicro()
	as.Queue, as.Part, as.Key, as.N, as.Run = m.Queue, m.Part, m.Key, m.N, id
	as.What = "starting"
	record(o, as)
	options = append(options, durable.OnQueue(m.Queue), durable.Priority(as.Priority))
	if m.Part != "" {
		options = append(options, durable.Partition(m.Part))
	}
	if as.Due != 0 {
		options = append(options, durable.StartAt(time.UnixMicro(as.Due)))
	}
	if as.Delay != 0 {
		options = append(options, durable.Delay(time.Duration(as.Delay)*time.Microsecond))
	}
	h, err := durable.Ref[letter, int]("mail").Start(ctx, id, m, options...)
	var conflict *durable.ConflictError
	switch {
	case errors.As(err, &conflict) && conflict.Holder != "":
		record(o, fact{What: "refused", Run: conflict.Holder, Key: m.Key, Since: since})
		return conflict.Holder, nil
	case err != nil:
		return "", fmt.Errorf("starting %s: %w", id, err)
	}
	as.What, as.Run, as.Since = "started", h.ID(), since
	record(o, as)
	return h.ID(), nil
}

// posts are the starts of one life: some of each queue.
func posts(ctx context.Context, o orders, life, n int) error {
	rnd := rand.New(rand.NewPCG(uint64(life), 7))
	now := time.Now()
	for i := range n {
		for _, q := range queueRules {
			id := fmt.Sprintf("%s-%d-%d", q.Name, life, i)
			m := letter{Queue: q.Name}
			var as fact
			var err error
			switch q.Name {
			case "limits":
				m.Part = strconv.Itoa(rnd.IntN(3))
				as.Delay = rnd.Int64N(2) * 30_000
			case "naps":
				m.Nap = 20 * time.Millisecond
			case "turns":
				m.Part = []string{"flood", "small", "tiny"}[min(i, 2)]
				as.Priority = rnd.IntN(2) * 1000 // which changes nothing between tenants
			case "ranks":
				as.Priority = rnd.IntN(4)
				as.Due = now.Add(-time.Duration(rnd.IntN(4*3600)) * time.Second).UnixMicro()
			case "once":
				m.Key = strconv.Itoa(i % 2)
				if _, err = post(ctx, o, id, m, as, durable.Dedup(m.Key)); err == nil {
					_, err = post(ctx, o, id+"-again", m, as, durable.Dedup(m.Key))
				}
			case "bounce":
				m.Key, m.N = strconv.Itoa(i%2), 1000*life+i+1
				_, err = post(ctx, o, durable.AutoID, m, as, durable.Debounce(m.Key, bounceWait, bounceMost))
			}
			if q.Name != "once" && q.Name != "bounce" {
				_, err = post(ctx, o, id, m, as)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// mailer starts letters, and executes all there are until it is killed, or told to
// end.
func mailer(st store.Store, o orders) (err error) {
	defer func() {
		if err != nil {
			record(o, fact{What: "error", Key: err.Error()})
		}
	}()
	eng, err := durable.Open(context.Background(), &watched{fullStore: st.(fullStore), o: o}, durable.Options{
		Workflows: []durable.Definition{mailing(o)}, Logger: quiet(), Lease: o.Lease, QuarantineAfter: 1 << 20, Queues: queueRules,
	})
	if err != nil {
		return err
	}
	ctx := durable.NewContext(context.Background(), eng)
	if _, err := durable.Recover(ctx); err != nil {
		return err
	}
	if err := posts(ctx, o, o.Life, o.New); err != nil {
		return err
	}
	record(o, fact{What: "posted", N: o.Life})
	for {
		if _, err := os.Stat(filepath.Join(o.Dir, "end")); err == nil {
			return eng.Close()
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Four processes share the queues, and whichever is killed is replaced. What their bodies have
// told the ledger is compared with every rule that the guide to queues states.
func TestQueuesKeepTheirRulesThoughProcessesAreKilled(t *testing.T) {
	kills := 12
	if soaking() {
		kills = 400
	}
	backends(t, func(t *testing.T, o orders) {
		seed := uint64(time.Now().UnixNano())
		if v := os.Getenv("HOLDFAST_SEED"); v != "" {
			var err error
			seed, err = strconv.ParseUint(v, 10, 64)
			require.NoError(t, err)
		}
		t.Logf("seed %d (HOLDFAST_SEED repeats the moments of the kills)", seed)
		rnd := rand.New(rand.NewPCG(seed, 0))
		o.Role, o.Lease, o.New = "mailer", 5*time.Second, 2
		st, err := openStore(o.Backend, o.DSN)
		require.NoError(t, err)
		defer func() { require.NoError(t, st.Close()) }()
		eng, err := durable.Open(t.Context(), st, durable.Options{Logger: quiet(), Lease: o.Lease})
		require.NoError(t, err)
		defer eng.Close()
		ctx := durable.NewContext(t.Context(), eng)

		// A tenant floods its queue before the others come.
		for i := range 20 {
			_, err := post(ctx, o, fmt.Sprint("flood", i), letter{Queue: "turns", Part: "flood"}, fact{Priority: 1000})
			require.NoError(t, err)
		}
		require.NoError(t, posts(ctx, o, 0, 4))

		life := 0
		next := func() *child {
			life++
			o.Life = life
			return start(t, o)
		}
		var crew []*child
		for range 4 {
			crew = append(crew, next())
		}
		pausing := false
		pause := func() {
			if pausing = !pausing; pausing {
				require.NoError(t, operate.On(eng).PauseQueue(ctx, "limits", "to see"))
				record(o, fact{What: "paused", Queue: "limits"})
				return
			}
			record(o, fact{What: "resuming", Queue: "limits"})
			require.NoError(t, operate.On(eng).ResumeQueue(ctx, "limits"))
		}
		require.Eventually(t, func() bool {
			q, err := st.(store.Queues).Queues(ctx, "limits")
			return err == nil && len(q) > 0 && q[0].Max > 0
		},
			time.Minute, 10*time.Millisecond)
		for k := range kills {
			time.Sleep(time.Duration(rnd.IntN(200_000)) * time.Microsecond) // the random moment of the kill, no wait for anything
			i := rnd.IntN(len(crew))
			killRecorded(t, o, crew[i])
			crew[i] = next()
			if k%3 == 2 {
				pause()
			}
		}
		if pausing {
			pause()
		}
		waitUntilPosted(t, o, crew)
		waitUntilEnded(t, st)
		require.NoError(t, os.WriteFile(filepath.Join(o.Dir, "end"), nil, 0o600))
		for _, c := range crew {
			require.NoError(t, c.Wait())
		}
		b := readBook(t, st, o, queueRules)
		b.checkAll(t)
		require.Positive(t, b.count("refused"), "two starts with one key met")
		tried.Say(t, "queues", "store=%s kills=%d processes=%d wrong=0", o.Backend, kills, life)
	})
}

// waitUntilPosted waits until those that live have started what they start.
func waitUntilPosted(t *testing.T, o orders, crew []*child) {
	t.Helper()
	require.Eventually(t, func() bool {
		posted := map[int]bool{}
		for _, f := range ledger(t, o) {
			require.NotEqual(t, "error", f.What, f.Key)
			posted[f.PID] = posted[f.PID] || f.What == "posted"
		}
		for _, c := range crew {
			if !posted[c.Process.Pid] {
				return false
			}
		}
		return true
	}, 2*time.Minute, 50*time.Millisecond, "every process starts its letters")
}

// waitUntilEnded waits until no run is left to be done.
func waitUntilEnded(t *testing.T, st store.Store) {
	t.Helper()
	require.Eventually(t, func() bool {
		open, err := st.Count(t.Context(), store.Filter{Statuses: []store.Status{store.Pending, store.Running, store.Resuming, store.Interrupted, store.Waiting}}, "")
		return err == nil && open[""] == 0
	}, 2*time.Minute, 50*time.Millisecond, "every run ends")
}
