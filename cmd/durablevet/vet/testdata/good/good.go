// Package good has idioms of workflow code in which nothing may be found.
package good

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/cmd/durablevet/vet/testdata/other"
	"github.com/holdfast-dev/holdfast/durable"
)

type order struct {
	ID       string
	Items    []string
	Placed   time.Time
	Extra    json.RawMessage `json:",omitempty"`
	Any      any
	Note     *string
	ByName   map[string]int
	ByNumber map[int]string
	internal int `json:"-"`
	mu       sync.Mutex
}

// money encodes itself.
type money struct{ cents int64 }

func (m money) MarshalJSON() ([]byte, error)  { return json.Marshal(m.cents) }
func (m *money) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &m.cents) }

type shop struct {
	db     *os.File
	served int
	mu     sync.Mutex
	log    *slog.Logger
}

var limit = 3

var errClosed = errors.New("closed")

// Everything is allowed in a body.
func (s *shop) checkout(ctx context.Context, o *order) (money, error) { // want checkout:"durable"
	began := durable.Now(ctx)
	id := durable.NewID(ctx)
	n := durable.Rand(ctx).IntN(6)
	price, err := durable.Step(ctx, "price", func(ctx context.Context) (money, error) {
		time.Sleep(time.Millisecond)
		m := map[string]int{"a": rand.IntN(6)}
		for k := range m {
			fmt.Println(k, time.Now())
		}
		done := make(chan struct{})
		go close(done)
		select {
		case <-done:
		case <-ctx.Done():
		}
		s.mu.Lock()
		s.served++ // read by nobody in the workflow
		s.mu.Unlock()
		return money{int64(n)}, s.charge(ctx, id)
	})
	if err != nil {
		return money{}, err
	}
	if durable.Now(ctx).Sub(began) > time.Hour {
		return money{}, errClosed
	}
	// A body by name, by method value, and in a variable.
	if err := durable.Do(ctx, "charge", func(ctx context.Context) error { return s.charge(ctx, id) }); err != nil {
		return money{}, err
	}
	if err := durable.Do(ctx, "ping", s.ping); err != nil {
		return money{}, err
	}
	load := func(ctx context.Context) (int, error) {
		f, err := os.Open("x")
		if err != nil {
			return 0, err
		}
		return 0, f.Close()
	}
	if _, err := durable.Step(ctx, "load", load); err != nil {
		return money{}, err
	}
	return price, other.Do(ctx, "note", func() { fmt.Fprintln(os.Stderr, time.Now()); _ = os.Getenv("X") })
}

func (s *shop) charge(ctx context.Context, id string) error { // want charge:"io"
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/"+id, strings.NewReader(durable.IdempotencyKey(ctx)))
	if err != nil {
		return err
	}
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	return r.Body.Close()
}

func (s *shop) ping(ctx context.Context) error { // want ping:"io"
	if _, err := os.Stat("/"); err != nil {
		return err
	}
	return ctx.Err()
}

// Maps whose order does not matter, or that are sorted.
func sortedKeys(ctx context.Context, in map[string]int) (string, error) { // want sortedKeys:"durable"
	for _, k := range slices.Sorted(maps.Keys(in)) {
		if err := durable.Do(ctx, k, func(context.Context) error { return nil }); err != nil {
			return "", err
		}
	}
	keys := make([]string, 0, len(in))
	for k := range in {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	collected := slices.Collect(maps.Keys(in))
	slices.Sort(collected)
	total, doubled := 0, map[string]int{}
	groups := map[string][]int{}
	for k, v := range in {
		total += v
		doubled[k] = 2 * v
		groups[k] = append(groups[k], v)
		if v < 0 {
			return "", fmt.Errorf("%d is negative", v)
		}
	}
	for k := range in {
		delete(in, k)
	}
	for range in {
		total++
	}
	return strings.Join(keys, ","), durable.Do(ctx, fmt.Sprint(total), func(context.Context) error { return nil })
}

// Items and branches: one without durable calls is recorded as a whole.
func fan(ctx context.Context, files []string) ([]int, error) { // want fan:"durable"
	sizes, err := durable.Map(ctx, "size", files, durable.MapOptions{}, func(_ context.Context, f string) (int, error) {
		info, err := os.Stat(f)
		if err != nil {
			return 0, err
		}
		return int(info.Size()), nil
	})
	if err != nil {
		return nil, err
	}
	g := durable.NewGroup(ctx)
	for _, f := range files {
		g.Go("read", func(ctx context.Context) error {
			return durable.Do(ctx, "read", func(ctx context.Context) error { return ctx.Err() })
		})
		_ = f
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	a := durable.Go(ctx, "a", func(ctx context.Context) (int, error) { return 1, durable.Sleep(ctx, time.Hour) })
	b := durable.Go(ctx, "b", func(ctx context.Context) (int, error) { return durable.Await[int](ctx, "go") })
	_, n, err := durable.First(ctx, "either", a, b)
	return append(sizes, n), err
}

// Variables that a body sets and that are not needed after a crash.
func closures(ctx context.Context, in int) (int, error) { // want closures:"durable"
	var err error
	var n int
	n, err = durable.Step(ctx, "a", func(context.Context) (int, error) {
		var v int
		v, err = fmt.Sscan("1", &in) // the statement sets err anew, and nobody reads in
		return v, err
	})
	if err != nil {
		return 0, err
	}
	attempts := 0
	v, err := durable.Retry(ctx, "b", durable.Policy{}, func(context.Context) (int, error) {
		attempts++ // only within the body
		if attempts > 3 {
			return 0, errClosed
		}
		return attempts, nil
	})
	if err != nil {
		return 0, err
	}
	tmp := 0
	if err := durable.Do(ctx, "c", func(context.Context) error { tmp = 1; return nil }); err != nil {
		return 0, err
	}
	tmp = v + n
	return tmp, nil
}

// Names in alternatives, in a loop, and of different kinds.
func names(ctx context.Context, in int) (int, error) { // want names:"durable"
	one := func(context.Context) (int, error) { return 1, nil }
	if durable.Patched(ctx, "new") {
		if _, err := durable.Step(ctx, "send", one); err != nil {
			return 0, err
		}
	} else {
		if _, err := durable.Step(ctx, "send", one); err != nil {
			return 0, err
		}
	}
	switch in {
	case 1:
		return durable.Step(ctx, "switch", one)
	case 2:
		return durable.Step(ctx, "switch", one)
	}
	if in > 3 {
		return durable.Step(ctx, "last", one)
	}
	for range in {
		if _, err := durable.Step(ctx, "loop", one); err != nil {
			return 0, err
		}
	}
	if _, err := durable.Await[int](ctx, "go"); err != nil {
		return 0, err
	}
	if _, err := durable.Await[int](ctx, "go"); err != nil {
		return 0, err
	}
	return durable.Step(ctx, "last", one)
}

// A deadline that is over before the wait.
func unhurried(ctx context.Context, in int) (int, error) { // want unhurried:"durable"
	whole := ctx
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	err := durable.Do(ctx, "a", func(ctx context.Context) error { return ctx.Err() })
	cancel()
	if err != nil {
		return 0, err
	}
	ctx = whole
	return durable.Await[int](ctx, "b")
}

// Contexts that are derived, and a deadline for a body alone.
func contexts(ctx context.Context, in int) (err error) { // want contexts:"durable"
	short, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := durable.Do(short, "a", func(ctx context.Context) error { return ctx.Err() }); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			durable.Logger(ctx).Error("it failed", "err", err)
		}
	}()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return durable.Sleep(context.WithValue(ctx, order{}.ID, in), time.Duration(limit)*time.Hour)
}

// What is pure in packages that do I/O.
func pure(ctx context.Context, in []string) (string, error) { // want pure:"durable"
	slices.SortFunc(in, func(a, b string) int { return strings.Compare(a, b) })
	d, err := time.ParseDuration("1h")
	if err != nil || errors.Is(err, os.ErrNotExist) || os.IsNotExist(err) {
		return "", err
	}
	if err := durable.Sleep(ctx, d); err != nil {
		return "", err
	}
	seeded := rand.New(rand.NewPCG(1, 2))
	u := time.Unix(0, 0).Add(d)
	return fmt.Sprint(http.StatusText(200), seeded.IntN(6), u, other.Pure(1), other.Allowed()), nil
}

// What is not workflow code at all.
func main(ctx context.Context, s *shop) error { // want main:"clock random io global"
	fmt.Println(time.Now(), rand.IntN(6), os.Getenv("HOME"))
	limit++
	wf := durable.Define("checkout", s.checkout)
	run, err := wf.Start(ctx, "id", &order{})
	if err != nil {
		return err
	}
	go func() { _, _ = run.Wait(context.Background()) }()
	_ = durable.Signal(ctx, "id", "go", true)
	var seen int
	count := durable.Define("count", func(ctx context.Context, in int) (int, error) {
		return durable.Step(ctx, "a", func(context.Context) (int, error) { seen++; return in, nil })
	})
	_, err = count.Run(ctx, "id", 1)
	fmt.Println(seen)
	return err
}

// A closure of the function's own that makes durable calls.
func closure(ctx context.Context, in []string) error { // want closure:"durable"
	send := func(ctx context.Context, what string) error {
		return durable.Do(ctx, "send "+what, func(ctx context.Context) error { return ctx.Err() })
	}
	for _, s := range in {
		if err := send(ctx, s); err != nil {
			return err
		}
	}
	return nil
}
