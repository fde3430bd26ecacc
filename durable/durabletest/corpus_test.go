package durabletest_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/durable/durabletest"
)

// The corpus: workflows that are wrong, each with the words by which Survives names
// the mistake, and workflows that are right, of which it must say nothing.

// A body of the user's world: a bank that books, and knows keys if it is asked to.
type bank struct {
	mu     sync.Mutex
	booked int
	keys   map[string]bool
}

func (b *bank) reset() { *b = bank{keys: map[string]bool{}} }

func (b *bank) book(key string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if key != "" && b.keys[key] {
		return b.booked
	}
	if key != "" {
		b.keys[key] = true
	}
	b.booked++
	return b.booked
}

func (b *bank) world() any { return b.booked }

// of one test, which is executed by itself.
var (
	theBank  = &bank{keys: map[string]bool{}}
	global   int
	settings = map[string]int{}
	counter  atomic.Int64
)

type workflow = func(ctx context.Context, in int) (string, error)

type wrong struct {
	name string
	fn   workflow
	o    []durabletest.Option
	says []string
	// with is another workflow that is registered.
	with []durable.Definition
}

func do(ctx context.Context, name string, body func()) error {
	return durable.Do(ctx, name, func(context.Context) error { body(); return nil })
}

var (
	withBank = []durabletest.Option{durabletest.Reset(theBank.reset), durabletest.World(theBank.world)}
	fresh    = []durabletest.Option{durabletest.Reboot(func() { global = 0; settings = map[string]int{} })}
)

// fan makes n goroutines of one's own.
func fan(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

type private struct {
	A int
	b int
}

type noJSON struct{ C chan int }

var corpusWrong = []wrong{
	// The clock, chance, the surroundings.
	{name: "the time of day picks the step", fn: func(ctx context.Context, in int) (string, error) {
		_, err := step(ctx, fmt.Sprint("hour", time.Now().Hour()), in)
		return "", err
	}, says: []string{"hour", "durable.Now"}},
	{name: "the weekday picks the step", fn: func(ctx context.Context, in int) (string, error) {
		_, err := step(ctx, time.Now().Weekday().String(), in)
		return "", err
	}, says: []string{"day", "durable.Now"}},
	{name: "the month picks the step", fn: func(ctx context.Context, in int) (string, error) {
		_, err := step(ctx, time.Now().Month().String(), in)
		return "", err
	}, says: []string{"January", "durable.Now"}},
	{name: "office hours decide", fn: sometimes(func(now time.Time) bool { return now.Hour() >= 9 && now.Hour() < 17 }), says: []string{"sometimes", "durable.Now"}},
	{name: "before noon or after", fn: sometimes(func(now time.Time) bool { return now.Hour() < 12 }), says: []string{"sometimes", "durable.Now"}},
	{name: "the half of the hour", fn: sometimes(func(now time.Time) bool { return now.Minute() >= 30 }), says: []string{"sometimes", "durable.Now"}},
	{name: "the half of the year", fn: sometimes(func(now time.Time) bool { return now.Month() > time.June }), says: []string{"sometimes", "durable.Now"}},
	{name: "an odd number of nanoseconds", fn: sometimes(func(now time.Time) bool { return now.UnixNano()%2 == 1 }), says: []string{"sometimes", "durable.Now"}},
	{name: "a sleep for what is left", fn: func(ctx context.Context, in int) (string, error) {
		until := durable.Now(ctx).Add(time.Hour)
		if err := durable.Sleep(ctx, 30*time.Minute); err != nil {
			return "", err
		}
		return "", durable.Sleep(ctx, until.Sub(durable.Now(ctx))) // is below zero after an outage
	}, says: []string{"a call that is refused", "SleepUntil", "eight days later"}},
	{name: "a timeout of what is left", fn: func(ctx context.Context, in int) (string, error) {
		until := durable.Now(ctx).Add(time.Hour)
		if _, err := step(ctx, "a", in); err != nil {
			return "", err
		}
		if err := durable.Sleep(ctx, time.Minute); err != nil {
			return "", err
		}
		_, err := durable.Await[int](ctx, "b", durable.Timeout(until.Sub(durable.Now(ctx))))
		if errors.Is(err, durable.ErrTimeout) {
			err = nil
		}
		return "", err
	}, says: []string{"a call that is refused", "max(d, 0)", "eight days later"}},
	{name: "the time in the output", fn: func(ctx context.Context, in int) (string, error) {
		_, err := step(ctx, "a", in)
		return time.Now().String(), err
	}, says: []string{"the outcome is another one", "durable.Now"}},
	{name: "time.Since in the output", fn: func(ctx context.Context, in int) (string, error) {
		began := time.Now()
		_, err := durable.Step(ctx, "a", func(context.Context) (int, error) { time.Sleep(time.Second); return in, nil })
		return time.Since(began).String(), err
	}, says: []string{"the outcome is another one", "durable.Now"}},
	{name: "a deadline by the local clock", fn: func(ctx context.Context, in int) (string, error) {
		if time.Now().Before(time.Date(2000, 1, 1, 12, 0, 0, 0, time.UTC)) {
			_, err := step(ctx, "early", in)
			return "", err
		}
		_, err := step(ctx, "late", in)
		return "", err
	}, says: []string{"early", "late"}},
	{name: "the time as the input of a step", fn: func(ctx context.Context, in int) (string, error) {
		return "", durable.Do(ctx, "send", func(context.Context) error { return nil }, durable.WithInput(time.Now().UnixNano()))
	}, says: []string{"send", "input"}},
	{name: "math/rand picks the step", fn: func(ctx context.Context, in int) (string, error) {
		_, err := step(ctx, fmt.Sprint("s", rand.IntN(1000)), in)
		return "", err
	}, says: []string{"> 1 ", "durable.Rand"}},
	{name: "math/rand in the output", fn: func(ctx context.Context, in int) (string, error) {
		_, err := step(ctx, "a", in)
		return fmt.Sprint(rand.IntN(1 << 30)), err
	}, says: []string{"the outcome is another one", "math/rand"}},
	{name: "math/rand decides how often", fn: func(ctx context.Context, in int) (string, error) {
		for range 1 + rand.IntN(100) {
			if _, err := step(ctx, "again", in); err != nil {
				return "", err
			}
		}
		return "", nil
	}, o: []durabletest.Option{durabletest.Sample(2)}, says: []string{"again"}},
	{name: "shuffled work", fn: func(ctx context.Context, in int) (string, error) {
		names := strings.Fields("a b c d e f g h")
		rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		for _, n := range names {
			if _, err := step(ctx, n, in); err != nil {
				return "", err
			}
		}
		return "", nil
	}, says: []string{"call"}},
	{name: "an address in the output", fn: func(ctx context.Context, in int) (string, error) {
		_, err := step(ctx, "a", in)
		v := new(int)
		*v = in
		keepAlive = append(keepAlive, v)
		return fmt.Sprintf("%p", v), err
	}, says: []string{"the outcome is another one"}},
	{name: "how often it was executed, in the output", fn: func(ctx context.Context, in int) (string, error) {
		_, err := step(ctx, "a", in)
		return fmt.Sprint(counter.Add(1)), err
	}, says: []string{"the outcome is another one", "package variable"}},
	{name: "how often it was executed picks the step", fn: func(ctx context.Context, in int) (string, error) {
		_, err := step(ctx, fmt.Sprint("s", counter.Add(1)), in)
		return "", err
	}, says: []string{"> 1 s", "package variable"}},
	{name: "the process id in the output", fn: func(ctx context.Context, in int) (string, error) {
		_, err := step(ctx, "a", in)
		return fmt.Sprint(os.Getpid()), err
	}, o: []durabletest.Option{}, says: []string{"in a process of its own"}},
	{name: "an environment variable that only the process has", fn: func(ctx context.Context, in int) (string, error) {
		if os.Getenv("HOLDFAST_DURABLETEST_DIR") != "" {
			_, err := step(ctx, "elsewhere", in)
			return "", err
		}
		_, err := step(ctx, "here", in)
		return "", err
	}, says: []string{"in a process of its own", "here", "os.Getenv"}},
	{name: "a file that a body writes and the function reads", fn: func(ctx context.Context, in int) (string, error) {
		name := os.TempDir() + "/" + fmt.Sprint("holdfast-corpus-", os.Getpid())
		if _, err := os.Stat(name); err == nil {
			defer os.Remove(name)
			_, err := step(ctx, "known", in)
			return "", err
		}
		err := do(ctx, "write", func() { _ = os.WriteFile(name, nil, 0o600) })
		return "", err
	}, says: []string{"write", "a file"}},

	// Maps.
	{name: "steps in the order of a map", fn: func(ctx context.Context, in int) (string, error) {
		for k := range map[string]int{"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6, "g": 7, "h": 8} {
			if _, err := step(ctx, k, in); err != nil {
				return "", err
			}
		}
		return "", nil
	}, says: []string{"call", "sort the keys"}},
	{name: "the items of a Map in the order of a map", fn: func(ctx context.Context, in int) (string, error) {
		var items []string
		for k := range map[string]int{"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6, "g": 7, "h": 8} {
			items = append(items, k)
		}
		_, err := durable.Map(ctx, "m", items, durable.MapOptions{}, func(ctx context.Context, k string) (int, error) { return step(ctx, "s", in) })
		return "", err
	}, says: []string{"Item 0 of m is another one", "sort the keys"}},
	{name: "branches named in the order of a map", fn: func(ctx context.Context, in int) (string, error) {
		for k := range map[string]int{"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6, "g": 7, "h": 8} {
			f := durable.Go(ctx, k, func(ctx context.Context) (int, error) { return step(ctx, "s", in) })
			if _, err := f.Wait(ctx); err != nil {
				return "", err
			}
		}
		return "", nil
	}, says: []string{"sort the keys"}},
	{name: "the first key of a map in the output", fn: func(ctx context.Context, in int) (string, error) {
		_, err := step(ctx, "a", in)
		for k := range map[string]int{"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6, "g": 7, "h": 8} {
			return k, err
		}
		return "", err
	}, says: []string{"the outcome is another one", "sort the keys"}},
	{name: "floats summed in the order of a map, shown to a step", fn: func(ctx context.Context, in int) (string, error) {
		sum := 0.0
		for _, v := range map[int]float64{1: 1e16, 2: 1, 3: -1e16, 4: 3, 5: 1e-3, 6: 7e15, 7: -7e15, 8: 0.1} {
			sum += v
		}
		return "", durable.Do(ctx, "book", func(context.Context) error { return nil }, durable.WithInput(sum))
	}, says: []string{"book", "input", "sort the keys"}},

	// State beside what is recorded.
	{name: "a closure that a body sets, in the output", fn: func(ctx context.Context, in int) (string, error) {
		seen := 0
		err := do(ctx, "look", func() { seen = in })
		return fmt.Sprint(seen), err
	}, says: []string{`"7"`, `"0"`, "return it from the step"}},
	{name: "a closure that a body sets picks the step", fn: func(ctx context.Context, in int) (string, error) {
		found := false
		if err := do(ctx, "look", func() { found = true }); err != nil {
			return "", err
		}
		name := "not found"
		if found {
			name = "found"
		}
		_, err := step(ctx, name, in)
		return "", err
	}, says: []string{"found", "return it from the step"}},
	{name: "a closure that a body sets reaches another body", fn: func(ctx context.Context, in int) (string, error) {
		current := 0
		if err := do(ctx, "load", func() { current = in }); err != nil {
			return "", err
		}
		if err := do(ctx, "between", func() {}); err != nil {
			return "", err
		}
		_, err := durable.Step(ctx, "send", func(context.Context) (int, error) { return current, nil })
		return "", err
	}, says: []string{`step "send" returned 7`, "and returned 0 now", "a variable that another body sets"}},
	{name: "a slice that bodies append to", fn: func(ctx context.Context, in int) (string, error) {
		var all []int
		for i := range 3 {
			if err := do(ctx, "add", func() { all = append(all, i) }); err != nil {
				return "", err
			}
		}
		return fmt.Sprint(all), nil
	}, says: []string{"[0 1 2]", "return it from the step"}},
	{name: "a map that bodies fill", fn: func(ctx context.Context, in int) (string, error) {
		m := map[string]int{}
		if err := do(ctx, "fill", func() { m["k"] = in }); err != nil {
			return "", err
		}
		if _, ok := m["k"]; ok {
			_, err := step(ctx, "there", in)
			return "", err
		}
		return "", nil
	}, says: []string{"there", "return it from the step"}},
	{name: "a pointer that a body writes through", fn: func(ctx context.Context, in int) (string, error) {
		p := &private{}
		err := do(ctx, "write", func() { p.A = in })
		return fmt.Sprint(p.A), err
	}, says: []string{`"7"`, "return it from the step"}},
	{name: "sync.Once around a step", fn: func(ctx context.Context, in int) (string, error) {
		var err error
		onceEver.Do(func() { _, err = step(ctx, "once", in) })
		return "", err
	}, says: []string{"once is recorded and the code no longer calls it"}},
	{name: "a cache in a package variable", fn: func(ctx context.Context, in int) (string, error) {
		if _, ok := settings["rate"]; !ok {
			v, err := step(ctx, "fetch rate", in)
			if err != nil {
				return "", err
			}
			settings["rate"] = v
		}
		_, err := step(ctx, "use", settings["rate"])
		return "", err
	}, says: []string{"fetch rate", "package variable"}},
	{name: "a package variable that a body sets", fn: func(ctx context.Context, in int) (string, error) {
		if err := do(ctx, "set", func() { global = in }); err != nil {
			return "", err
		}
		return fmt.Sprint(global), nil
	}, o: fresh, says: []string{`"7"`, `"0"`, "package variable"}},
	{name: "a package variable between two bodies", fn: func(ctx context.Context, in int) (string, error) {
		if err := do(ctx, "set", func() { global = in }); err != nil {
			return "", err
		}
		_, err := durable.Step(ctx, "get", func(context.Context) (int, error) { return global, nil })
		return "", err
	}, o: fresh, says: []string{`step "get"`, "a variable that another body sets"}},
	{name: "a connection that a body opens and another uses", fn: func(ctx context.Context, in int) (string, error) {
		var conn *bank
		if err := do(ctx, "connect", func() { conn = theBank }); err != nil {
			return "", err
		}
		return "", durable.Do(ctx, "query", func(context.Context) error {
			if conn == nil {
				return durable.Permanent(errors.New("not connected"))
			}
			return nil
		})
	}, says: []string{`step "query"`, "failed now", "a variable that another body sets"}},
	{name: "the world is read outside of a step", fn: func(ctx context.Context, in int) (string, error) {
		if theBank.booked == 0 {
			return "", durable.Do(ctx, "book", func(ctx context.Context) error { theBank.book(durable.IdempotencyKey(ctx)); return nil })
		}
		_, err := step(ctx, "booked already", in)
		return "", err
	}, o: withBank, says: []string{"book"}},
	{name: "the balance decides, outside of a step", fn: func(ctx context.Context, in int) (string, error) {
		before := theBank.booked
		if err := durable.Do(ctx, "book", func(ctx context.Context) error { theBank.book(durable.IdempotencyKey(ctx)); return nil }); err != nil {
			return "", err
		}
		return fmt.Sprint(theBank.booked - before), nil
	}, o: withBank, says: []string{"the outcome is another one"}},

	// Effects.
	{name: "an effect without a key", fn: func(ctx context.Context, in int) (string, error) {
		return "", durable.Do(ctx, "book", func(context.Context) error { theBank.book(""); return nil })
	}, o: withBank, says: []string{"another world", "IdempotencyKey"}},
	{name: "an effect outside of a step", fn: func(ctx context.Context, in int) (string, error) {
		theBank.book("")
		_, err := step(ctx, "a", in)
		return "", err
	}, o: withBank, says: []string{"another world", "outside of a step"}},
	{name: "a deferred effect", fn: func(ctx context.Context, in int) (string, error) {
		defer theBank.book("")
		_, err := step(ctx, "a", in)
		return "", err
	}, o: withBank, says: []string{"another world", "deferred"}},
	{name: "an effect in a retried body", fn: func(ctx context.Context, in int) (string, error) {
		return durable.Retry(ctx, "pay", durable.Policy{MaxAttempts: 3, Initial: time.Second}, func(ctx context.Context) (string, error) {
			theBank.book("")
			if durable.Attempt(ctx).Number < 2 {
				return "", errors.New("no answer")
			}
			return "paid", nil
		})
	}, o: withBank, says: []string{"another world", "IdempotencyKey"}},
	{name: "a fresh key for each attempt", fn: func(ctx context.Context, in int) (string, error) {
		return "", durable.Do(ctx, "book", func(context.Context) error { theBank.book(fmt.Sprint(rand.Int64())); return nil })
	}, o: withBank, says: []string{"another world", "IdempotencyKey"}},
	{name: "an effect in the items of a Map", fn: func(ctx context.Context, in int) (string, error) {
		_, err := durable.Map(ctx, "m", []int{1, 2}, durable.MapOptions{}, func(ctx context.Context, n int) (int, error) {
			return durable.Step(ctx, "book", func(context.Context) (int, error) { theBank.book(""); return n, nil })
		})
		return "", err
	}, o: withBank, says: []string{"another world", "IdempotencyKey"}},

	// Goroutines, channels, waits.
	{name: "time.Sleep", fn: func(ctx context.Context, in int) (string, error) {
		if _, err := step(ctx, "a", in); err != nil {
			return "", err
		}
		time.Sleep(time.Hour)
		_, err := step(ctx, "b", in)
		return "", err
	}, says: []string{"waits without a durable call", "corpus_test.go", "durable.Sleep"}},
	{name: "time.After in a select", fn: func(ctx context.Context, in int) (string, error) {
		if _, err := step(ctx, "a", in); err != nil {
			return "", err
		}
		select {
		case <-time.After(time.Minute):
		case <-ctx.Done():
		}
		_, err := step(ctx, "b", in)
		return "", err
	}, says: []string{"waits without a durable call", "corpus_test.go", "durable.Sleep"}},
	{name: "a goroutine that never ends", fn: func(ctx context.Context, in int) (string, error) {
		never := make(chan int)
		go func() { <-never }()
		_, err := step(ctx, "a", in)
		return "", err
	}, says: []string{"does not end", "chan receive", "corpus_test.go"}},
	{name: "a body that leaves a goroutine behind", fn: func(ctx context.Context, in int) (string, error) {
		return "", do(ctx, "a", func() { never := make(chan int); go func() { <-never }() })
	}, says: []string{"does not end", "corpus_test.go"}},
	{name: "two calls at once, errors dropped", fn: func(ctx context.Context, in int) (string, error) {
		fan(2, func(i int) {
			_ = durable.Do(ctx, fmt.Sprint("s", i), func(context.Context) error { time.Sleep(time.Second); return nil })
		})
		return "", nil
	}, says: []string{"while", "is under way in the same scope", "durable.Go"}},
	{name: "two calls at once", fn: func(ctx context.Context, in int) (string, error) {
		errs := make([]error, 2)
		fan(2, func(i int) {
			errs[i] = durable.Do(ctx, fmt.Sprint("s", i), func(context.Context) error { time.Sleep(time.Second); return nil })
		})
		return "", errors.Join(errs...)
	}, says: []string{"is under way in the same scope", "durable.Go"}},
	{name: "a race of one's own", fn: func(ctx context.Context, in int) (string, error) {
		first := make(chan string, 2)
		go func() { time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond); first <- "a" }()
		go func() { time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond); first <- "b" }()
		won := <-first
		<-first
		_, err := step(ctx, won, in)
		return "", err
	}, says: []string{"durable."}},
	{name: "the outer context in a branch", fn: func(ctx context.Context, in int) (string, error) {
		f := durable.Go(ctx, "b", func(context.Context) (int, error) { return step(ctx, "s", in) })
		_, err := f.Wait(ctx)
		return "", err
	}, says: []string{"with the context of the workflow function", "Use the ctx"}},
	{name: "the outer context in an item, error dropped", fn: func(ctx context.Context, in int) (string, error) {
		_, err := durable.Map(ctx, "m", []int{1}, durable.MapOptions{}, func(_ context.Context, n int) (int, error) {
			_, _ = step(ctx, "s", in)
			return n, nil
		})
		return "", err
	}, says: []string{"with the context of the workflow function", "Use the ctx"}},
	{name: "the outer context in a body", fn: func(ctx context.Context, in int) (string, error) {
		return "", durable.Do(ctx, "a", func(context.Context) error { _, err := step(ctx, "b", in); return err })
	}, says: []string{"must not make durable calls"}},
	{name: "a call in a body, error dropped", fn: func(ctx context.Context, in int) (string, error) {
		return "", durable.Do(ctx, "a", func(ctx context.Context) error { _, _ = step(ctx, "b", in); return nil })
	}, says: []string{"was called in the body of a"}},
	{name: "a call in a body", fn: func(ctx context.Context, in int) (string, error) {
		return "", durable.Do(ctx, "a", func(ctx context.Context) error { _, err := step(ctx, "b", in); return err })
	}, says: []string{"was called in the body of a"}},
	{name: "context.Background for a call", fn: func(ctx context.Context, in int) (string, error) {
		_, err := step(context.Background(), "a", in)
		return "", err
	}, says: []string{"called outside a run"}},
	{name: "a wait that nothing answers", fn: func(ctx context.Context, in int) (string, error) {
		v, err := durable.Await[string](ctx, "approval")
		return v, err
	}, o: []durabletest.Option{durabletest.Within(time.Hour)}, says: []string{"has not ended within 1h", "approval", "durabletest.Beside"}},
	{name: "a future nobody waits for", fn: func(ctx context.Context, in int) (string, error) {
		durable.Go(ctx, "left", func(ctx context.Context) (int, error) {
			return durable.Step(ctx, "s", func(context.Context) (int, error) { time.Sleep(time.Second); return in, nil })
		})
		return "", nil
	}, says: []string{"left"}},

	// Calls that only other code can mend.
	{name: "a result that cannot be encoded", fn: func(ctx context.Context, in int) (string, error) {
		_, err := durable.Step(ctx, "a", func(context.Context) (noJSON, error) { return noJSON{make(chan int)}, nil })
		return "", err
	}, o: []durabletest.Option{durabletest.Fails()}, says: []string{"chan"}},
	{name: "a result that loses a field", fn: func(ctx context.Context, in int) (string, error) {
		v, err := durable.Step(ctx, "a", func(context.Context) (private, error) { return private{1, in}, nil })
		return fmt.Sprint(v.b), err
	}, o: []durabletest.Option{durabletest.Want("7")}, says: []string{"is to complete with 7", `completed with "0"`}},
	{name: "an empty id of a child", fn: func(ctx context.Context, in int) (string, error) {
		_, err := corpusChild.Start(ctx, "", in)
		return "", err
	}, o: []durabletest.Option{durabletest.Fails()}, with: []durable.Definition{corpusChild}, says: []string{"run id", "must not be empty", "durable.AutoID"}},
	{name: "a child whose workflow the test does not have", fn: func(ctx context.Context, in int) (string, error) {
		_, err := corpusChild.Run(ctx, durable.AutoID, in)
		return "", err
	}, says: []string{"corpus-child", "Options.Workflows"}},
	{name: "an empty name of a step", fn: func(ctx context.Context, in int) (string, error) {
		_, err := step(ctx, "", in)
		return "", err
	}, o: []durabletest.Option{durabletest.Fails()}, says: []string{"name"}},
	{name: "a name that is too long", fn: func(ctx context.Context, in int) (string, error) {
		_, err := step(ctx, strings.Repeat("n", 300), in)
		return "", err
	}, o: []durabletest.Option{durabletest.Fails()}, says: []string{"255"}},
	{name: "it fails always", fn: func(ctx context.Context, in int) (string, error) {
		_, err := step(ctx, "a", in)
		return "", errors.Join(err, durable.Permanent(errors.New("out of stock")))
	}, says: []string{"is to complete, and did not", "out of stock", "durabletest.Fails"}},
	{name: "it fails with another error", fn: func(ctx context.Context, in int) (string, error) {
		_, err := step(ctx, "a", in)
		return "", errors.Join(err, durable.Permanent(errors.New("out of stock")))
	}, o: []durabletest.Option{durabletest.Fails(errRefused)}, says: []string{"is to fail with", "refused", "out of stock"}},
	{name: "it completes and is to fail", fn: func(ctx context.Context, in int) (string, error) {
		_, err := step(ctx, "a", in)
		return "fine", err
	}, o: []durabletest.Option{durabletest.Fails()}, says: []string{"is to fail", "completed with"}},
	{name: "it completes with something else", fn: func(ctx context.Context, in int) (string, error) {
		_, err := step(ctx, "a", in)
		return "wrong", err
	}, o: []durabletest.Option{durabletest.Want("right")}, says: []string{"is to complete with right", "wrong"}},
	{name: "it panics", fn: func(ctx context.Context, in int) (string, error) {
		_, _ = step(ctx, "a", in)
		panic("index out of range")
	}, says: []string{"is to complete, and did not", "index out of range"}},
	{name: "it ends its goroutine", fn: func(ctx context.Context, in int) (string, error) {
		_, _ = step(ctx, "a", in)
		runtime.Goexit()
		return "", nil
	}, o: []durabletest.Option{durabletest.Fails()}, says: []string{"runtime.Goexit"}},
	{name: "the process of its own sees another package variable", fn: func(ctx context.Context, in int) (string, error) {
		if err := do(ctx, "set", func() { perProcess = in }); err != nil {
			return "", err
		}
		return fmt.Sprint(perProcess), nil
	}, says: []string{"in a process of its own", "package variable"}},

	// Cancels and deadlines.
	{name: "a context of its own ends on a timer", fn: func(ctx context.Context, in int) (string, error) {
		short, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		if err := durable.Do(short, "slow", func(context.Context) error { time.Sleep(2 * time.Minute); return nil }); err != nil {
			return "", err
		}
		if short.Err() != nil {
			_, err := step(ctx, "too late", in)
			return "", err
		}
		return "in time", nil
	}, says: []string{"too late"}},
	{name: "it looks at ctx.Err between calls", fn: func(ctx context.Context, in int) (string, error) {
		for i := range 3 {
			if time.Now().Year() > 2000 || ctx.Err() != nil && rand.IntN(2) == 0 {
				_, err := step(context.WithoutCancel(ctx), "clean up", i)
				return "", err
			}
			if _, err := step(ctx, fmt.Sprint("s", i), in); err != nil {
				return "", err
			}
		}
		return fmt.Sprint(time.Now().Minute()), nil
	}, says: []string{"the outcome is another one"}},
	{name: "a hash over the time", fn: func(ctx context.Context, in int) (string, error) {
		key := sha256.Sum256([]byte(time.Now().String()))
		return "", durable.Do(ctx, "put", func(context.Context) error { return nil }, durable.WithInput(fmt.Sprintf("%x", key)))
	}, says: []string{"put", "input"}},
	{name: "it sorts by chance", fn: func(ctx context.Context, in int) (string, error) {
		names := strings.Fields("a b c d e f")
		sort.Slice(names, func(i, j int) bool { return rand.IntN(2) == 0 })
		for _, n := range names {
			if _, err := step(ctx, n, in); err != nil {
				return "", err
			}
		}
		return "", nil
	}, says: []string{"call"}},
}

var (
	keepAlive   []*int
	onceEver    *sync.Once
	perProcess  int
	errRefused  = errors.New("refused")
	corpusChild = durable.Define("corpus-child", func(ctx context.Context, in int) (int, error) { return step(ctx, "double", 2*in) })
)

// inAProcessOfItsOwn are those that a replay in this process does not show.
var inAProcessOfItsOwn = map[string]bool{
	"the process id in the output":                         true,
	"an environment variable that only the process has":    true,
	"the process of its own sees another package variable": true,
}

func TestWrongWorkflowsAreCaughtWithTheirMistakeNamed(t *testing.T) {
	require.GreaterOrEqual(t, len(corpusWrong), 60)
	for _, w := range slices.Concat(corpusWrong, newcomerWrong) {
		t.Run(w.name, func(t *testing.T) {
			theBank.reset()
			theMemo.known = map[string]int{}
			onceEver = new(sync.Once)
			o := w.o
			if !inAProcessOfItsOwn[w.name] {
				o = append(o[:len(o):len(o)], durabletest.SameProcess())
			}
			if w.with != nil {
				o = append(o[:len(o):len(o)], durabletest.Engine(durable.Options{Workflows: w.with}))
			}
			err := durabletest.Examine(t, define(w.fn), 7, o...)
			require.Error(t, err)
			for _, part := range w.says {
				require.ErrorContains(t, err, part)
			}
			require.NotContains(t, err.Error(), "durable.Patched", "nobody has changed the code")
			require.NotContains(t, err.Error(), "Or run this with")
		})
	}
}

// sometimes makes a call if the clock says so.
func sometimes(when func(now time.Time) bool) workflow {
	return func(ctx context.Context, in int) (string, error) {
		if when(time.Now()) {
			if _, err := step(ctx, "sometimes", in); err != nil {
				return "", err
			}
		}
		_, err := step(ctx, "a", in)
		return "", err
	}
}
