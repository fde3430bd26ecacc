package dashboard_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/durable"
)

// The list reads the end of a history alone, and the page all of it.
func TestTheListAndThePageOfARunAgree(t *testing.T) {
	onStores(t, dashboard.Options{}, func(t *testing.T, s *site) {
		long := durable.Define("long", func(ctx context.Context, _ int) (int, error) {
			for i := range 60 {
				if err := durable.Do(ctx, fmt.Sprint("step-", i), func(context.Context) error {
					if i == 0 {
						time.Sleep(30 * time.Millisecond) // the work of this step
					}
					return nil
				}); err != nil {
					return 0, err
				}
			}
			return 0, nil
		})
		require.NoError(t, s.eng.Close())
		s.serve(durable.Options{Workflows: []durable.Definition{long}}, dashboard.Options{})
		_, err := long.Start(withEngine(s), "r", 0)
		require.NoError(t, err)
		s.until("r", "completed")
		list, page := s.browse("/").body, s.browse("/runs/r").body
		row := regexp.MustCompile(`<div class="where">Completed in ([^<]+)</div><small>60 steps done</small>`).FindStringSubmatch(list)
		require.NotNil(t, row, list)
		require.Contains(t, page, "Completed in <b>"+row[1]+"</b>: 60 steps")

		var axis []string
		for _, m := range regexp.MustCompile(`<text class="ax[^>]*>([^<]+)<`).FindAllStringSubmatch(page, -1) {
			axis = append(axis, m[1])
		}
		require.Greater(t, len(axis), 2)
		slices.Sort(axis)
		require.Equal(t, axis, slices.Compact(slices.Clone(axis)), "each moment on the axis is another one")

		// One that was started a moment ago waits for a process to take it, as yet.
		_, err = durable.Ref[int, int]("elsewhere").Start(withEngine(s), "new", 0)
		require.NoError(t, err)
		require.Regexp(t, `data-key="new">\s*(?:<td class="s-ck">.*</td>\s*)?<td class="s-st"><span class="st off">.*Pending</span>`, s.browse("/").body)
		require.Regexp(t, `class="st pill off">.*Pending</span>`, s.browse("/runs/new").body)
	})
}
