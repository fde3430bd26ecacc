package browser_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/durable"
)

type kept struct{}

func (kept) Source() string { return "git" }

func (kept) Runs(context.Context) ([]client.ArchivedRun, error) {
	var runs []client.ArchivedRun
	for i := range 30 {
		runs = append(runs, client.ArchivedRun{RunID: fmt.Sprintf("old-%d", i), Workflow: "checkout", Status: "failed", Error: "bank down", EndedAt: time.Now().Add(-30 * 24 * time.Hour), DurationMS: 754_000})
	}
	return runs, nil
}

// On a phone each run is a card, of which nothing stands over another.
func TestTheHistoryOnAPhoneHasNothingOverAnother(t *testing.T) {
	wf := durable.Define("ask", func(ctx context.Context, _ int) (int, error) { return 0, nil })
	s := open(t, dashboard.Options{Archive: kept{}}, wf)
	b := s.visit("/history")
	b.look(390, 844, true, "light")
	b.navigate(s.url + "/history")
	require.Equal(t, float64(30), b.eval(`document.querySelectorAll(".runs.old tbody tr").length`))
	require.Equal(t, "", b.eval(`[...document.querySelectorAll("tr")].map((tr) => { const r = [...tr.children].map((c) => { const g = document.createRange(); g.selectNodeContents(c); return g.getBoundingClientRect(); }).filter((x) => x.width > 0);
		for (let i = 0; i < r.length; i++) for (let j = i + 1; j < r.length; j++) if (r[i].left < r[j].right - 1 && r[j].left < r[i].right - 1 && r[i].top < r[j].bottom - 1 && r[j].top < r[i].bottom - 1) return tr.innerText; return ""; }).join("")`))
}
