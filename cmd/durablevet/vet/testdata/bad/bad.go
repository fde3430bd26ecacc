// Package bad has the mistakes that each rule is for.
package bad

import (
	"bytes"
	"context"
	crand "crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/cmd/durablevet/vet/testdata/other"
	"github.com/holdfast-dev/holdfast/durable"
)

func step(ctx context.Context, name string) (int, error) { // want step:"durable"
	return durable.Step(ctx, name, func(context.Context) (int, error) { return 1, nil })
}

// The clock.

var _ = durable.Define("clock", clock)

func clock(ctx context.Context, in int) (time.Time, error) { // want clock:"durable"
	began := time.Now()                        // want `clock: time.Now in workflow code outside of a step`
	time.Sleep(time.Second)                    // want `clock: time.Sleep`
	if time.Since(began) > time.Duration(in) { // want `clock: time.Since`
		return began, errors.New("late")
	}
	_ = other.Stamp()     // want `clock: Stamp, which leads to time.Now \(other.go:\d+\), in workflow code`
	_ = other.Indirect()  // want `clock: Indirect, which leads to time.Now`
	t := time.NewTimer(1) // want `clock: time.NewTimer`
	defer t.Stop()
	helper(ctx)
	tick := time.Now // want `clock: time.Now`
	_, err := step(ctx, tick().String())
	return local(), err // want `clock: local, which leads to time.Now \(bad.go:\d+\)`
}

// helper is workflow code since it is called with its context.
func helper(ctx context.Context) {
	_ = ctx
	_ = time.Now() // want `clock: time.Now`
}

func local() time.Time { return time.Now() } // want local:"clock"

// Chance.

func random(ctx context.Context, in int) (int, error) { // want random:"durable"
	n := rand.IntN(6) + rand.N(3) // want `random: rand.IntN` `random: rand.N`
	var b [8]byte
	if _, err := crand.Read(b[:]); err != nil { // want `random: rand.Read`
		return 0, err
	}
	n += other.Draw() // want `random: Draw, which leads to rand.IntN`
	_, err := step(ctx, string(rune('a'+n)))
	return n, err
}

// Maps.

func mapOrder(ctx context.Context, in map[string]int) ([]string, error) { // want mapOrder:"durable"
	for k := range in { // want `maporder: durable calls in the order of a map`
		if _, err := step(ctx, k); err != nil {
			return nil, err
		}
	}
	for k := range maps.Keys(in) { // want `maporder: durable calls in the order of a map`
		f := durable.Go(ctx, k, func(ctx context.Context) (int, error) { return step(ctx, "a") })
		if _, err := f.Wait(ctx); err != nil {
			return nil, err
		}
	}
	var keys []string
	for k := range in {
		keys = append(keys, k) // want `maporder: keys is put together in the order of a map`
	}
	sum, text := 0.0, ""
	for k, v := range in {
		sum += float64(v) // want `maporder: sum`
		text += k         // want `maporder: text`
	}
	for k := range in {
		return []string{k}, nil // want `maporder: whichever key of a map comes first`
	}
	_ = slices.Collect(maps.Keys(in)) // want `maporder: slices.Collect`
	return keys, nil
}

// Goroutines and channels.

func goroutines(ctx context.Context, in chan int) (int, error) { // want goroutines:"durable"
	go func() { // want `goroutine: a goroutine in workflow code`
		_, _ = step(ctx, "beside") // want `dropped: the error of step`
	}()
	var wg sync.WaitGroup
	wg.Go(func() {}) // want `goroutine: WaitGroup.Go`
	select {         // want `select: select in workflow code`
	case <-in:
	case <-ctx.Done():
	}
	<-in           // want `select: a channel in workflow code`
	in <- 1        // want `select: a channel in workflow code`
	for range in { // want `select: a range over a channel`
	}
	return step(ctx, "a")
}

// The world.

func world(ctx context.Context, db *sql.DB) (int, error) { // want world:"durable"
	_ = os.Getenv("HOME")                                   // want `io: os.Getenv`
	_ = other.Home()                                        // want `io: Home, which leads to os.Getenv`
	if _, err := http.Get("http://localhost"); err != nil { // want `io: http.Get`
		return 0, err
	}
	req, _ := http.NewRequestWithContext(ctx, "GET", "http://localhost", nil)
	_, _ = http.DefaultClient.Do(req)           // want `io: http.Client.Do`
	_, _ = db.ExecContext(ctx, "DELETE FROM t") // want `io: sql.DB.ExecContext`
	_ = exec.Command("true").Run()              // want `io: exec.Cmd.Run`
	return step(ctx, "a")
}

// Package variables.

var (
	total   int
	cache   = map[string]int{}
	counter atomic.Int64
	number  int64
	once    sync.Once
)

func global(ctx context.Context, in int) (int, error) { // want global:"durable"
	total++                     // want `global: a write to total`
	cache["rate"] = in          // want `global: a write to cache`
	delete(cache, "rate")       // want `global: a write to cache`
	counter.Add(1)              // want `global: a write to counter`
	atomic.AddInt64(&number, 1) // want `global: a write to number`
	_ = other.Count()           // want `global: Count, which leads to a write to count`
	var err error
	once.Do(func() { _, err = step(ctx, "once") }) // want `global: a write to once`
	return total, err
}

// Closures.

type invoice struct{ Total int }

type office struct{ last int }

var current invoice

func capture(ctx context.Context, in []byte) (int, error) { // want capture:"durable"
	var inv, other invoice
	var seen []int
	err := durable.Do(ctx, "load", func(context.Context) error {
		inv = invoice{1}                  // want `capture: inv is set here and read at bad.go:\d+`
		seen = append(seen, 1)            // want `capture: seen is set here`
		current.Total = 2                 // want `capture: current.Total is set here`
		return json.Unmarshal(in, &other) // want `capture: other is set here`
	})
	if err != nil {
		return 0, err
	}
	return inv.Total + other.Total + len(seen) + current.Total, nil
}

func (o *office) capture(ctx context.Context, in int) (int, error) { // want capture:"durable"
	n := 0
	for range 3 {
		if err := other.Do(ctx, "add", func() { n++ }); err != nil { // want `capture: n is set here`
			return 0, err
		}
		if n > 1 {
			break
		}
	}
	p := &invoice{}
	var buf bytes.Buffer
	g := durable.NewGroup(ctx)
	g.Go("branch", func(ctx context.Context) error {
		_, err := step(ctx, "a")
		p.Total = in        // want `capture: p.Total is set here`
		buf.WriteString("") // want `capture: buf is set here`
		return err
	})
	if err := g.Wait(); err != nil {
		return 0, err
	}
	err := durable.Do(ctx, "keep", func(context.Context) error {
		o.last = in // want `capture: o.last is set here`
		return nil
	})
	return p.Total + buf.Len() + o.last, err
}

// Names.

func names(ctx context.Context, in int) (int, error) { // want names:"durable"
	if _, err := durable.Step(ctx, "send", func(context.Context) (int, error) { return 1, nil }); err != nil {
		return 0, err
	}
	const send = "send"
	return durable.Retry(ctx, send, durable.Policy{}, func(context.Context) (int, error) { return 2, nil }) // want `stepname: the name "send" is also that of the call at bad.go:\d+`
}

// Values.

type shape interface{ Area() float64 }

type hidden struct {
	Name  string
	state int
}

type drawing struct {
	Shapes []shape
}

type key struct{ A, B int }

var _ = durable.Define("values", func(ctx context.Context, in map[key]int) (hidden, error) { // want `json: map\[key\]int does not survive the record of durable.Define: the keys of map\[key\]int`
	if _, err := durable.Step(ctx, "a", func(context.Context) (chan int, error) { return nil, nil }); err != nil { // want `json: .* is a channel`
		return hidden{}, err
	}
	if _, err := durable.Step(ctx, "b", func(context.Context) (struct{ F func() }, error) { return struct{ F func() }{}, nil }); err != nil { // want `json: .*F is a function`
		return hidden{}, err
	}
	if _, err := durable.Await[drawing](ctx, "c"); err != nil { // want `json: .*drawing.Shapes\[\] is an interface`
		return hidden{}, err
	}
	if err := durable.Publish(ctx, "k", hidden{}); err != nil { // want `json: .*the field hidden.state is not exported`
		return hidden{}, err
	}
	return durable.Step(ctx, "d", func(context.Context) (hidden, error) { return hidden{}, nil }) // want `json: .*the field hidden.state is not exported`
})

// Errors.

func dropped(ctx context.Context, in int) error { // want dropped:"durable"
	durable.Sleep(ctx, time.Hour)                                          // want `dropped: the error of Sleep is dropped`
	_ = durable.Do(ctx, "a", func(context.Context) error { return nil })   // want `dropped: the error of Do`
	n, _ := step(ctx, "b")                                                 // want `dropped: the error of step`
	defer durable.Do(ctx, "c", func(context.Context) error { return nil }) // want `dropped: the error of Do`
	return durable.Do(ctx, string(rune(n)), func(context.Context) error { return nil })
}

// Contexts.

type keeper struct{ ctx context.Context }

var kept context.Context

func contexts(ctx context.Context, in int) error { // want contexts:"durable"
	if _, err := step(context.Background(), "a"); err != nil { // want `context: context.Background in workflow code`
		return err
	}
	k := keeper{ctx: ctx} // want `context: a context of workflow code is kept`
	k.ctx = ctx           // want `context: a context of workflow code is kept`
	kept = ctx            // want `context: a context of workflow code is kept` `global: a write to kept`
	g := durable.NewGroup(ctx)
	g.Go("branch", func(inner context.Context) error {
		_, err := step(ctx, "b") // want `context: a branch or item uses the context ctx from around it`
		return err
	})
	if err := g.Wait(); err != nil {
		return err
	}
	short, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if _, err := durable.Await[int](short, "c"); err != nil { // want `context: durable.Await with a deadline of this process`
		return err
	}
	return durable.Do(ctx, "d", func(context.Context) error {
		return ctx.Err() // want `context: the body of a step uses the context ctx from around it`
	})
}

// The deadline is given to the parameter itself, as in most Go code.
func hurried(ctx context.Context, in int) (int, error) { // want hurried:"durable"
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return durable.Await[int](ctx, "a") // want `context: durable.Await with a deadline of this process`
}

func nested(ctx context.Context, in int) error { // want nested:"durable"
	return durable.Do(ctx, "outer", func(ctx context.Context) error {
		return durable.Sleep(ctx, time.Hour) // want `context: durable.Sleep in the body of a step is refused`
	})
}
