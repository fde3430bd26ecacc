package dashboard_test

import (
	"context"
	"html"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/durable"
)

func TestTheTimelineIsLookedAtInTheTimeOfOneRow(t *testing.T) {
	var built time.Duration
	work := durable.Define("work", func(ctx context.Context, _ int) (int, error) {
		for _, name := range []string{"fetch", "unpack", "build", "sign", "send"} {
			if err := durable.Do(ctx, name, func(context.Context) error {
				// A twentieth of what is looked at is shown on both sides: its neighbours take
				// longer than that, also where the machine holds it up.
				took, began := 20*time.Millisecond, time.Now()
				switch name {
				case "unpack":
					took = 250 * time.Millisecond
				case "sign":
					took += built / 10
				}
				time.Sleep(took)
				if name == "build" {
					built = time.Since(began)
				}
				return nil
			}); err != nil {
				return 0, err
			}
		}
		return 0, nil
	})
	s := &site{t: t, st: memoryStore(t), shop: new(shop)}
	s.serve(durable.Options{Workflows: []durable.Definition{work}}, dashboard.Options{})
	_, err := work.Start(withEngine(s), "r", 0)
	require.NoError(t, err)
	s.until("r", "completed")
	drawn := func(page, key string) bool {
		row := regexp.MustCompile(`data-nav>` + key + `</a>.*<svg class="g"[^>]*>(.*)</svg></td><td class="d"`).FindStringSubmatch(page)
		require.NotNil(t, row, key)
		return regexp.MustCompile(`<rect class="ok"`).MatchString(row[1])
	}
	whole := s.browse("/runs/r?step=build").body
	link := regexp.MustCompile(`href="([^"]+)"[^>]*>Zoom in<`).FindStringSubmatch(whole)
	require.NotNil(t, link)
	near := s.browse(html.UnescapeString(link[1])).body
	for key, there := range map[string]bool{"fetch": false, "build": true, "send": false} {
		require.True(t, drawn(whole, key), key)
		require.Equal(t, there, drawn(near, key), key)
	}
	require.NotContains(t, near, ">Zoom in<", "it is looked at")
	back := regexp.MustCompile(`href="([^"]+)"[^>]*>Whole time<`).FindStringSubmatch(near)
	require.NotNil(t, back)
	require.True(t, drawn(s.browse(html.UnescapeString(back[1])).body, "fetch"))
	require.NotContains(t, whole, ">Whole time<")
	for _, odd := range []string{"nothing", "%00", "r"} { // an address that somebody made up
		require.True(t, drawn(s.browse("/runs/r?zoom="+odd).body, "fetch"), odd)
	}
}
