//go:build unix

package dashboard

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard/internal/read"
	"github.com/holdfast-dev/holdfast/dashboard/internal/view"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// fullArchive has more than an answer may have.
type fullArchive struct{}

func (fullArchive) Source() string { return "git" }

func (fullArchive) Runs(context.Context) ([]client.ArchivedRun, error) {
	runs := make([]client.ArchivedRun, 3000)
	for i := range runs {
		runs[i] = client.ArchivedRun{RunID: fmt.Sprintf("old-%d", i), Workflow: "checkout", Status: "failed", Error: strings.Repeat("\x01error ", 1000)}
	}
	return runs, nil
}

// full is a handler over a store with many runs and some that are as large as the
// engine lets them be.
func full(t *testing.T, runs int) *handler {
	t.Helper()
	st, err := sqlite.OpenOptions(filepath.Join(t.TempDir(), "runs.db"), sqlite.Options{Synchronous: sqlite.Off})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	word := strings.Repeat("x", 2000)
	big := durable.Define("big", func(ctx context.Context, n int) (int, error) {
		for i := range 300 { // names as long as may be, each with a link to it
			if err := durable.Do(ctx, fmt.Sprintf("%0250d", i), func(context.Context) error { return nil }); err != nil {
				return 0, err
			}
		}
		items := make([]int, 400)
		_, _ = durable.Map(ctx, strings.Repeat("m", 250), items, durable.MapOptions{}, func(ctx context.Context, i int) (int, error) {
			return i, durable.Do(ctx, strings.Repeat("s", 250), func(context.Context) error { return fmt.Errorf("%s", strings.Repeat(word, 5)) })
		})
		_, err := durable.Await[bool](ctx, "ask", durable.Prompt(strings.Repeat("\x01prompt ", 8000)))
		return n, err
	})
	eng, err := durable.Open(context.Background(), st, durable.Options{Logger: slog.New(slog.DiscardHandler), Workflows: []durable.Definition{big}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, eng.Close()) })
	_, err = eng.Recover(context.Background())
	require.NoError(t, err)
	for i := range 40 {
		_, err := big.Start(durable.NewContext(t.Context(), eng), fmt.Sprintf("big-%d", i), i)
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool {
		n, err := st.Count(t.Context(), read.AskingFilter(), "")
		return err == nil && n[""] == 40
	}, 30*time.Second, 20*time.Millisecond)
	var changes []store.Change
	for i := range runs {
		id, reason := fmt.Sprintf("order-%06d", i), "no stock"
		if i < 1100 {
			reason = strings.Repeat("\x01", 60<<10)
		}
		at := store.TimeOf(time.Now().Add(time.Duration(i-runs) * time.Second))
		e := store.Event{Seq: 1, Type: store.WorkflowCreated, At: at}
		e.Sum = store.Seal(id, 0, &e)
		changes = append(changes, store.Change{
			RunID: id, Expect: store.Expect{Absent: true}, Events: []store.Event{e},
			Create: &store.Run{ID: id, Workflow: "checkout", Status: store.Failed, Reason: reason, Epoch: int64(at), CreatedAt: at, UpdatedAt: at, EndedAt: at},
		})
	}
	for part := range slices.Chunk(changes, 1000) {
		for _, err := range st.Commit(t.Context(), part) {
			require.NoError(t, err)
		}
	}
	// A wait for a run that nobody ends is answered after a heartbeat.
	return newHandler(eng, Options{Logger: slog.New(slog.DiscardHandler), ShowPayloads: true, Archive: fullArchive{}, Heartbeat: 100 * time.Millisecond})
}

// cpu is the processor time that this thread has used, which the test is locked to and
// a request is served on, SQLite included: neighbours, the collector of garbage and
// the engine's own goroutines do not count. Elsewhere than on Linux it is that of the
// process.
func cpu(t *testing.T) time.Duration {
	who := syscall.RUSAGE_SELF
	if runtime.GOOS == "linux" {
		who = 1 // RUSAGE_THREAD
	}
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(who, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// parameters are what an address of a route may say, and one that no route knows.
func parameters(rt route) []string {
	names := []string{"nosuch"}
	for _, text := range ops[rt.method+" "+rt.pattern].query {
		name, _, _ := strings.Cut(text, ":")
		names = append(names, name)
	}
	switch rt.pattern {
	case "/{$}":
		names = append(names, "q", "add", "after", "done")
	case "/go":
		names = append(names, "q")
	case "/bulk":
		names = append(names, "q", "act=resume&q", "after")
	case "/waiting", "/history":
		names = append(names, "from", "q")
	case "/runs/{id}", "/runs/{id}/rows":
		for name := range view.Params {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// fillings are hostile values of one parameter, some 60 kB each.
func fillings(name string) map[string]string {
	if name == "nosuch" {
		return map[string]string{"long": name + "=" + strings.Repeat("w", 60_000)}
	}
	all := everyFilling(name)
	switch name {
	case "step", "zoom", "shut", "edit":
		return map[string]string{"long": all["long"], "repeated": all["repeated"], "seqs": all["seqs"]}
	case "q", "act=resume&q", "attribute", "workflow", "open", "find":
		return all
	}
	return map[string]string{"repeated": all["repeated"]}
}

func everyFilling(name string) map[string]string {
	one := name + "="
	repeated := func(value string) string {
		part := one + value + "&"
		return strings.Repeat(part, 60_000/len(part))
	}
	return map[string]string{
		"long":     one + strings.Repeat("w", 60_000),
		"words":    one + strings.Repeat("w:1+", 15_000),
		"filters":  one + strings.Repeat("a%3D1+", 10_000),
		"commas":   one + strings.Repeat("a,", 30_000),
		"controls": one + strings.Repeat("%01", 20_000),
		"repeated": repeated("~"),
		"pairs":    repeated("a%3D" + "b"),
		"seqs":     repeated("%402"),
		// Within the bounds, and as costly as they allow.
		"misses": one + strings.Join(strings.Fields(strings.Repeat("a1%3D1 a2%3D1 a3%3D1 a4%3D1 a5%3D1 a6%3D1 ", 3)), "+"),
		"search": one + "error:nowhere+key:nowhere+nowhere",
	}
}

func TestNoRequestMakesALargeAnswerOrTakesLong(t *testing.T) {
	const most, longest = 2 << 20, 500 * time.Millisecond
	h := full(t, 100_000)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	srv := h.guard()
	here := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80}
	ask := func(method, target, body, mime string) *httptest.ResponseRecorder {
		ctx, stop := context.WithTimeout(context.WithValue(t.Context(), http.LocalAddrContextKey, net.Addr(here)), 10*time.Second)
		defer stop()
		if strings.Contains(target, "/stream") {
			ctx, stop = context.WithTimeout(ctx, 50*time.Millisecond)
			defer stop()
		}
		r := httptest.NewRequestWithContext(ctx, method, target, strings.NewReader(body))
		r.Host, r.RemoteAddr = "localhost", "127.0.0.1:9"
		r.Header.Set("Accept", "text/html")
		if mime != "" {
			r.Header.Set("Content-Type", mime)
		}
		w := httptest.NewRecorder()
		srv.ServeHTTP(w, r)
		return w
	}
	asked := 0
	t.Log("made")
	check := func(what, method, target, body, mime string) {
		asked++
		begin := cpu(t)
		w := ask(method, target, body, mime)
		used := cpu(t) - begin
		if used > longest { // it may have been the first to fill a cache, or helped to collect garbage: the least of several
			for range 3 {
				begin = cpu(t)
				ask(method, target, body, mime)
				used = min(used, cpu(t)-begin)
			}
		}
		if n := w.Body.Len() + len(w.Header().Get("Location")); n > most {
			t.Errorf("%s: %d bytes were answered", what, n)
		}
		if used > longest {
			t.Errorf("%s: it took %v of processor time", what, used)
		}
		if w.Code == http.StatusInternalServerError && !strings.Contains(w.Body.String(), "answer_too_large") {
			t.Errorf("%s: %d %.300s", what, w.Code, w.Body)
		}
	}
	slot := regexp.MustCompile(`\{[a-z_]*\}`)
	for _, rt := range h.routes() {
		path := strings.NewReplacer("{$}", "", "{seq}", "1", "{name}", "big", "{workflow}", "big").Replace(rt.pattern)
		for _, id := range []string{"big-0", "order-000001", strings.Repeat("i", 60_000)} {
			at := slot.ReplaceAllString(path, id)
			what := fmt.Sprintf("%s %.60s", rt.method, at)
			if rt.method == http.MethodGet {
				check(what, rt.method, at, "", "")
			}
			if at == path {
				break
			}
		}
		at := slot.ReplaceAllString(path, "big-0")
		if rt.method != http.MethodGet {
			for name, body := range map[string]string{
				"long": `{"reason":"` + strings.Repeat("w", 60_000) + `"}`, "deep": strings.Repeat("[", 60_000), "unknown": `{"` + strings.Repeat("w", 60_000) + `":1}`,
				"filter": `{"dry_run":true,"filter":{"workflow":["` + strings.Repeat(`w","`, 15_000) + `"]}}`, "attributes": `{"dry_run":true,"filter":{"attribute":["` + strings.Repeat(`a=1","`, 10_000) + `"]}}`,
			} {
				check(rt.method+" "+at+" "+name, rt.method, strings.Replace(at, "big-0", "order-000007", 1), body, "application/json")
			}
			if rt.page {
				form := url.Values{"q": {strings.Repeat("w:1 ", 15_000)}, "matching": {"1"}}
				check(rt.method+" "+at+" form", rt.method, strings.Replace(at, "big-0", "order-000007", 1), form.Encode(), "application/x-www-form-urlencoded")
			}
			continue
		}
		for _, name := range parameters(rt) {
			for kind, query := range fillings(name) {
				if strings.Contains(at, "/assets/") || rt.action == "" {
					continue
				}
				check(fmt.Sprintf("GET %s %s %s", at, name, kind), "GET", at+"?"+query, "", "")
			}
		}
	}
	t.Logf("%d requests", asked)
}
