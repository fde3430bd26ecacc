package cli_test

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var exitSaid = regexp.MustCompile(`# exit (\d+)`)

func TestEveryCommandOfTheOperatingPageWorks(t *testing.T) {
	page, err := os.ReadFile("../docs/operating.md")
	require.NoError(t, err)
	d := newDesk(t)
	interrupted(d)
	operator := d.with("DURABLE_STORE=shop.db")
	run, damaged := 0, false
	shell := false
	for line := range strings.Lines(string(page)) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "```"):
			shell = line == "```sh"
			continue
		case !shell:
			continue
		}
		if line == "durable doctor                            # exit 6" {
			damage(d, "charge", 2) // behind the backups
			damaged = true
		}
		if strings.HasPrefix(line, "durable pause order-41") {
			s := d.terminal(`shop durable run checkout --id order-41 --input '{"id":"order-41"}'`)
			s.until("? Ship order-41?")
			s.press(ctrlC)
			require.Equal(t, 130, s.end())
		}
		want := []int{0}
		if said := exitSaid.FindStringSubmatch(line); said != nil {
			code, err := strconv.Atoi(said[1])
			require.NoError(t, err)
			want[0] = code
			if strings.HasPrefix(line, "durable stuck") {
				want = append(want, 0) // a run that has just been left may still be claimed
			}
		}
		a := operator.sh(line)
		require.Contains(t, want, a.code, "%s\n%s%s", line, a.out, a.err)
		run++
	}
	require.True(t, damaged)
	require.Greater(t, run, 15)
}
