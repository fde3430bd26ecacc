package browser_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/dashboard"
)

// A cut is a server between the browser and the dashboard that can be cut off.
type cut struct {
	all  atomic.Bool // nothing is answered
	acts atomic.Bool // acts are done, and their answers are lost
	to   http.Handler
}

func (c *cut) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if c.acts.Load() && r.Method == http.MethodPost {
		c.to.ServeHTTP(httptest.NewRecorder(), r)
	} else if !c.all.Load() {
		c.to.ServeHTTP(w, r)
		return
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_ = conn.(*net.TCPConn).SetLinger(0)
		_ = conn.Close()
	}
}

// cuttable puts a cut in front of a site.
func (s *site) cuttable() (*cut, func()) {
	c := &cut{to: dashboard.Handler(s.eng, dashboard.Options{ShowPayloads: true})}
	srv := httptest.NewServer(c)
	s.t.Cleanup(func() { srv.CloseClientConnections(); srv.Close() })
	s.url = srv.URL
	return c, func() { c.all.Store(true); srv.CloseClientConnections() }
}

const said = `[...document.querySelectorAll("#toasts .toast")].map((t) => t.innerText).join("\n")`

func TestAPageWhoseServerIsDownStaysAndSaysHowOldItIs(t *testing.T) {
	s, _, wf := opened(t)
	s.start(wf, "order-1", "waiting")
	c, down := s.cuttable()
	b := s.visit("/")
	b.until(`document.querySelector("[data-live]").innerText.trim() === "Live"`)
	down()
	b.until(`/(Reconnecting|Not connected|trying again)/.test(document.querySelector("[data-live]").innerText) && /ata of \d+:\d\d:\d\d/.test(document.querySelector("[data-live]").innerText)`)
	home, _ := b.eval("location.href").(string)

	b.eval(`document.querySelector('tr[data-key="order-1"] a.id').click(); 1`)
	b.until(said + `.includes("The server does not answer")`)
	require.Equal(t, home, b.eval("location.href"), "the list is still there")
	require.Contains(t, b.text("main"), "order-1")
	b.notReloaded()

	c.all.Store(false)
	b.until(`document.querySelector("[data-live]").innerText.trim() === "Live"`)
	b.eval(`document.querySelector('tr[data-key="order-1"] a.id').click(); 1`)
	b.until(`location.pathname === "/runs/order-1" && "ready" in document.body.dataset`)
}

func TestGoingBackWhileTheServerIsDownKeepsThePage(t *testing.T) {
	s, _, wf := opened(t)
	s.start(wf, "order-1", "waiting")
	_, down := s.cuttable()
	b := s.visit("/runs/order-1")
	b.until(`document.querySelector("[data-live]").innerText.trim() === "Live"`)
	b.eval(`document.querySelector('a.k[data-soft]').click(); 1`)
	b.until(`location.search.includes("step=")`)
	down()
	b.until(`document.querySelector("[data-live]").classList.contains("bad")`)
	b.eval("history.back(); 1")
	b.until(said + `.includes("The server does not answer")`)
	require.Contains(t, b.text("main"), "order-1")
	b.notReloaded()
}

// An act whose answer was lost may have been done: the page says so, and it was.
func TestAnActWhoseAnswerIsLostIsNotSaidToBeUndone(t *testing.T) {
	s, _, wf := opened(t)
	s.start(wf, "order-1", "waiting")
	c, _ := s.cuttable()
	b := s.visit("/runs/order-1")
	b.until(`document.querySelector("[data-live]").innerText.trim() === "Live"`)
	c.acts.Store(true)
	b.press("Approve")
	b.until(said + `.includes("it is not known whether it was done")`)
	text, _ := b.eval(said).(string)
	require.Contains(t, text, "It may have been done all the same: look at the run before you do it again.")
	require.NotContains(t, strings.ToLower(text), "not done")
	s.eventually("order-1", "completed")
	b.shows("Completed")
	b.notReloaded()
}
