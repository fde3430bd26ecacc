package browser_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store/memory"
	"github.com/holdfast-dev/holdfast/test/browsertest"
)

// browser is the one of all tests; each has a tab of its own.
var browser context.Context

func TestMain(m *testing.M) {
	os.Exit(func() int {
		path, leftOut, err := browsertest.Chromium()
		if path == "" {
			fmt.Println(leftOut)
			if err != nil {
				fmt.Println(err)
				return 1
			}
			return 0
		}
		opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path))
		if os.Getuid() == 0 {
			opts = append(opts, chromedp.NoSandbox) // it refuses to run as root with it
		}
		alloc, stop := chromedp.NewExecAllocator(context.Background(), opts...)
		defer stop()
		ctx, stop := chromedp.NewContext(alloc)
		defer stop()
		if err := chromedp.Do(ctx); err != nil {
			fmt.Println("Chromium does not start:", err)
			return 1
		}
		browser = ctx
		return m.Run()
	}())
}

// site is a dashboard over an engine that executes workflows.
type site struct {
	t   *testing.T
	eng *durable.Engine
	url string
	ctx context.Context // carries the engine
}

func open(t *testing.T, o dashboard.Options, defs ...durable.Definition) *site {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	eng, err := durable.Open(context.Background(), memory.Open(), durable.Options{Name: "web-1", Workflows: defs, Logger: quiet, Grace: -1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, eng.Close()) })
	_, err = eng.Recover(context.Background())
	require.NoError(t, err)
	o.Logger = quiet
	srv := httptest.NewServer(dashboard.Handler(eng, o))
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	return &site{t: t, eng: eng, url: srv.URL, ctx: durable.NewContext(context.Background(), eng)}
}

// eventually waits for a run to be in a status.
func (s *site) eventually(id, status string) {
	s.t.Helper()
	var is string
	require.Eventually(s.t, func() bool {
		info, err := s.eng.Get(context.Background(), id)
		is = string(info.Status)
		return err == nil && is == status
	}, time.Minute, 10*time.Millisecond, "%s is %s", id, is)
}

// tab is a page in the browser, which fails its test at any error of a script and
// at any breach of the content security policy.
type tab struct {
	t   *testing.T
	ctx context.Context

	home     string // address of the site, that of no other is asked for anything
	mu       sync.Mutex
	problems []string
}

// visit opens a page.
func (s *site) visit(path string) *tab {
	s.t.Helper()
	ctx, stop := chromedp.NewContext(browser)
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	s.t.Cleanup(func() { cancel(); stop() })
	b := &tab{t: s.t, ctx: ctx, home: s.url}
	require.NoError(s.t, chromedp.Do(ctx))
	require.NoError(s.t, chromedp.Listen(ctx, b.hear))
	_, err := chromedp.Call(ctx, network.Enable, network.EnableParams{})
	require.NoError(s.t, err)
	// As if it were the one in front: a page that nobody sees waits with its work.
	_, err = chromedp.Call(ctx, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	require.NoError(s.t, err)
	s.t.Cleanup(func() { require.Empty(s.t, b.heard(), "what the browser complained about") })
	b.navigate(s.url + path)
	return b
}

func (b *tab) hear(ev any) {
	said := ""
	switch ev := ev.(type) {
	case *page.EventJavascriptDialogOpening:
		said = "a dialog: " + ev.Message
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(ev.Request.URL, b.home+"/") && !strings.HasPrefix(ev.Request.URL, "data:") {
			said = "a request went elsewhere: " + ev.Request.URL
		}
	case *runtime.EventExceptionThrown:
		said = "an exception: " + ev.ExceptionDetails.Text
	case *runtime.EventConsoleAPICalled:
		if ev.Type == "error" {
			said = "console: " + string(ev.Type)
		}
	}
	if said != "" {
		b.mu.Lock()
		b.problems = append(b.problems, said)
		b.mu.Unlock()
	}
}

func (b *tab) heard() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.problems
}

func (b *tab) navigate(url string) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Do(b.ctx, chromedp.Navigate(url), chromedp.WaitReady(chromedp.CSS("body[data-ready]"))))
	// Breaches of the policy and a reload are both seen through this.
	b.eval("window.mark = 1; window.breaches = []; addEventListener('securitypolicyviolation', (e) => breaches.push(e.violatedDirective + ' ' + e.blockedURI)); 1")
}

// eval evaluates an expression and returns it as JSON would.
func (b *tab) eval(js string) any {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[any](js))
	require.NoError(b.t, err, js)
	return v
}

// until waits for an expression to be true; what is shown when it never is.
func (b *tab) until(js string) {
	b.t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		if v, err := chromedp.Run(b.ctx, chromedp.Evaluate[any](js)); err == nil && v == true {
			return
		} else if time.Now().After(deadline) {
			require.Failf(b.t, "it did not happen", "%s (%v)\nthe page: %s", js, err, b.text("main"))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// shows waits for a text in the page.
func (b *tab) shows(text string) {
	b.t.Helper()
	b.until("document.body.innerText.includes(" + quoted(text) + ")")
}

func (b *tab) text(css string) string {
	b.t.Helper()
	v, _ := b.eval("document.querySelector(" + quoted(css) + ")?.innerText || ''").(string)
	return v
}

func (b *tab) has(css string) bool {
	b.t.Helper()
	return b.eval("!!document.querySelector("+quoted(css)+")") == true
}

// press clicks the one visible button or link with this text, where it is on the
// screen: something that covers it would be hit instead.
func (b *tab) press(label string) {
	b.t.Helper()
	find := `[...document.querySelectorAll("button, a")].filter((e) => e.offsetParent && !e.disabled && e.textContent.trim() === ` + quoted(label) + `)`
	b.until(find + `.length === 1`)
	place, _ := b.eval(`(() => { const e = ` + find + `[0]; e.scrollIntoView({block: "center"}); const r = e.getBoundingClientRect(), x = r.x + r.width / 2, y = r.y + r.height / 2; return e.contains(document.elementFromPoint(x, y)) ? [x, y] : null; })()`).([]any)
	require.Len(b.t, place, 2, "%q is covered by something", label)
	require.NoError(b.t, chromedp.Do(b.ctx, chromedp.MouseClickXY(place[0].(float64), place[1].(float64))))
}

// notReloaded requires that the page is still the one that was visited.
func (b *tab) notReloaded() {
	b.t.Helper()
	require.Equal(b.t, float64(1), b.eval("window.mark || 0"), "the page was loaded anew")
}

func (b *tab) noBreach() {
	b.t.Helper()
	require.Equal(b.t, "[]", b.eval("JSON.stringify(window.breaches)"), "of the content security policy")
}

// look sets how the page is looked at.
func (b *tab) look(width, height int64, phone bool, scheme string) {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1, Mobile: phone})
	require.NoError(b.t, err)
	_, err = chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
	require.NoError(b.t, err)
}

func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return strings.ReplaceAll(string(b), "</", `<\/`)
}
