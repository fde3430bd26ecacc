package browser_test

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// queued is a site with a queue of one place that is taken, two runs in line, and a
// schedule.
func queued(t *testing.T) *site {
	t.Helper()
	mail := durable.Define("mail", func(ctx context.Context, _ string) (string, error) { return "", durable.Sleep(ctx, time.Hour) })
	s := open(t, dashboard.Options{}, mail)
	require.NoError(t, store.CapabilitiesOf(s.eng.Store()).Queues.PutQueue(s.ctx, store.Queue{Name: "emails", Max: 1, Rate: 100, Per: time.Minute}))
	_, err := mail.Start(s.ctx, "mail-1", "", durable.OnQueue("emails"), durable.Partition("acme"))
	require.NoError(t, err)
	s.eventually("mail-1", "waiting")
	for _, id := range []string{"mail-2", "mail-3"} {
		_, err := mail.Start(s.ctx, id, "", durable.OnQueue("emails"), durable.Partition("a-tenant-with-a-name-"+strings.Repeat("w", 200)))
		require.NoError(t, err)
	}
	other, err := durable.Open(s.ctx, s.eng.Store(), durable.Options{
		Logger: slog.New(slog.DiscardHandler), Grace: -1, Workflows: []durable.Definition{mail}, Schedules: []durable.Schedule{mail.Schedule("nightly", durable.Cron("0 2 1 1 *"), "")},
	})
	require.NoError(t, err)
	require.NoError(t, other.Close())
	return s
}

func TestAQueueIsPausedInPlaceAndThePageFollowsWhatOthersDo(t *testing.T) {
	s := queued(t)
	b := s.visit("/queues")
	b.shows("1 of 1 run")
	b.press("Pause")
	b.shows("Paused")
	b.notReloaded()
	require.NoError(t, operate.On(s.eng).ResumeQueue(s.ctx, "emails"))
	b.until(`[...document.querySelectorAll("main button")].some((e) => e.textContent.trim() === "Pause")`)
	b.notReloaded()
	b.noBreach()
}

func TestThePagesOfQueuesAndSchedulesAreAccessibleAndFitAPhone(t *testing.T) {
	axe, err := os.ReadFile("../../testdata/axe/axe.min.js")
	require.NoError(t, err)
	s := queued(t)
	b := s.visit("/queues")
	pages := []string{"/queues", "/queues/emails", "/schedules", "/schedules/nightly", "/schedules/nightly?from=2021-06-01&to=2023-06-01", "/runs/mail-2"}
	for _, scheme := range []string{"light", "dark"} {
		b.look(1300, 900, false, scheme)
		for _, page := range pages {
			b.navigate(s.url + page)
			b.eval(string(axe) + "; 1")
			b.eval(`window.found = null; axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}).then((r) => { window.found = r.violations.map((v) => v.id + ": " + v.help + " | " + v.nodes.map((n) => n.target.join(" ") + " " + (n.any[0]?.message || "")).slice(0, 4).join(" | ")); }); 1`)
			b.until("window.found !== null")
			require.Equal(t, "[]", b.eval("JSON.stringify(window.found, null, 1)"), "%s, %s", page, scheme)
		}
	}
	b.look(390, 844, true, "light")
	for _, page := range pages {
		b.navigate(s.url + page)
		require.LessOrEqual(t, b.eval("document.documentElement.scrollWidth"), float64(390), "what overflows: %v on %s", b.eval(overflows), page)
		require.Equal(t, float64(0), b.eval(`[...document.querySelectorAll("main button, main a.btn")].filter((e) => e.offsetParent && e.getBoundingClientRect().height < 38).length`), "targets on %s", page)
	}
}
