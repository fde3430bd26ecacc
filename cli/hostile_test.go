package cli_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/visible"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// spoken are the sequences that the commands themselves send to a terminal: colours,
// and the lines they draw anew.
var spoken = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]|\x1b\\]8;;[^\x1b\a]*(\x1b\\\\|\a)")

// hostileLine is the name of a queue and of a schedule.
const hostileLine = "line \u202e\u2066$(touch pwned)'\"%s" + "\u200b"

// hostileRuns makes a store with runs in which every text is hostile: one that has
// failed, one that asks, one that is paused.
func hostileRuns(t *testing.T, path string, evil string) []string {
	t.Helper()
	st, err := sqlite.Open(path)
	require.NoError(t, err)
	name := "wf \u202e" + strings.Repeat("w", 150)
	wf := durable.Define(name, func(ctx context.Context, fail string) (string, error) {
		durable.Logger(ctx).Info(evil, "text", evil)
		if err := durable.Do(ctx, "step \u202e\u2066"+strings.Repeat("s", 150), func(ctx context.Context) error {
			durable.Note(ctx, "note \u202e", evil)
			if fail == "fail" {
				return durable.Permanent(errors.New(evil))
			}
			return nil
		}); err != nil {
			return "", err
		}
		return durable.Await[string](ctx, "wait \u202e", durable.Prompt(evil))
	}, durable.Version("v\u202e\"1"))
	eng, err := durable.Open(t.Context(), st, durable.Options{Name: "web \u202e1", Workflows: []durable.Definition{wf}, Logger: slog.New(slog.DiscardHandler),
		Queues: []durable.Queue{{Name: hostileLine, Max: 1, MaxPerPartition: 1, Rate: 1, Per: time.Hour}}, Schedules: []durable.Schedule{wf.Schedule(hostileLine, durable.Cron("0 2 1 1 *"), "asks")},
	})
	require.NoError(t, err)
	_, err = eng.Recover(t.Context())
	require.NoError(t, err)
	ids := []string{"order \u202e1", "$(touch pwned)\u2066'\"", "--json\u200b"}
	for i, in := range []string{"fail", "asks", "asks"} {
		_, err := wf.Start(durable.NewContext(t.Context(), eng), ids[i], in, durable.Attributes(map[string]string{"who \u202e": "a\u202eb"}))
		require.NoError(t, err)
		want := []string{"failed", "waiting", "waiting"}[i]
		require.Eventually(t, func() bool {
			info, err := eng.Get(t.Context(), ids[i])
			return err == nil && string(info.Status) == want
		}, 20*time.Second, 5*time.Millisecond)
	}
	for i, in := range []string{"fail", "asks", "asks"} {
		_, err := wf.Enqueue(durable.NewContext(t.Context(), eng), fmt.Sprint("in line \u202e", i), in, durable.OnQueue(hostileLine), durable.Partition("p \u202e"+strings.Repeat("p", 150)), durable.Dedup(fmt.Sprint("d\u202e", i)))
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool {
		info, err := eng.Get(t.Context(), "in line \u202e0")
		return err == nil && info.Status == store.Failed
	}, 20*time.Second, 5*time.Millisecond)
	op := operate.On(eng)
	require.NoError(t, op.PauseQueue(t.Context(), hostileLine, evil))
	require.NoError(t, op.PauseSchedule(t.Context(), hostileLine, evil))
	_, err = op.TriggerSchedule(t.Context(), hostileLine, "key \u202e")
	require.NoError(t, err)
	require.NoError(t, eng.Pause(t.Context(), ids[2], evil))
	require.NoError(t, eng.Close())
	require.NoError(t, st.Close())
	return ids
}

// What others have written is shown by every command, and does nothing to the
// terminal that shows it.
func TestNothingThatOthersWroteActsOnATerminal(t *testing.T) {
	const evil = "Ship \u202e?00.01€ rof pay\u202c \x1b]0;title\a\x1b[2J\x1b[31mred\u009b31m \r\b\b {{.}} <script>\u2028%s%n \u200b\ufeff\U000e0041"
	d := newDesk(t)
	ids := hostileRuns(t, filepath.Join(d.dir, "evil.db"), evil)
	quoted := func(id string) string { return "-- '" + strings.ReplaceAll(id, "'", `'\''`) + "'" }
	lines := []string{
		"sessions ls", "sessions ls --json", "sessions ls --resumable", "stuck", "stuck --json", "doctor", "doctor --json", "history", "schema status",
		"checkpoints ls -- nosuch", "sessions show -- '\u202enosuch'", "resume --dry-run -- '\u202enosuch'", "resume-last --dry-run", "watch -- '\u202enosuch'", "run '\u202ewf'",
	}
	for _, id := range ids {
		for _, line := range []string{
			"sessions show", "sessions show --verbose", "sessions show --json", "checkpoints ls", "checkpoints ls --json", "checkpoints validate", "branches", "resume --dry-run", "resume --dry-run --json",
			"fork --dry-run", "fork --dry-run --json",
		} {
			lines = append(lines, line+" "+quoted(id))
		}
	}
	for _, line := range []string{
		"queues show", "queues show --json", "queues dead", "queues dead --json", "queues retry --all --dry-run", "queues retry --all --dry-run --json", "queues retry", "queues pause --reason '\u202ewhy'", "queues resume",
		"schedules show", "schedules show --json", "schedules pause --reason '\u202ewhy'", "schedules resume", "schedules trigger --key '\u202ekey'", "schedules backfill --from 2024-01-01 --to 2026-01-01 --dry-run",
		"schedules backfill --from 2024-01-01 --to 2026-01-01", "schedules rm --yes",
	} {
		name := quoted(hostileLine)
		if line == "queues retry" {
			name += " 'in line \u202e0'"
		}
		lines = append(lines, "queues ls", "schedules ls", line+" "+name)
	}
	lines = append(lines, "queues ls --json", "schedules ls --json", "queues show -- '\u202enosuch'", "schedules show -- '\u202enosuch'", "sessions show 'in line \u202e1'", "stuck")
	for _, id := range ids[1:] {
		lines = append(lines, "approve --value '\"x\"' --reason '"+"\u202ewhy"+"' "+quoted(id), "signal --value '\"x\"' "+quoted(id)+" 'wait \u202e'", "pause "+quoted(id), "unpause "+quoted(id), "cancel --reason '\u202ewhy' "+quoted(id))
	}
	shown := 0
	for _, line := range lines {
		s := d.terminal("durable --store evil.db " + line)
		require.NotEqual(t, 2, s.end(), "%s was not understood: %s", line, s.seen)
		text := strings.ReplaceAll(spoken.ReplaceAllString(s.seen, ""), "\r\n", "\n")
		for _, r := range strings.ReplaceAll(text, "\r", "") { // of a line that is drawn anew
			if r != '\n' && r != '\t' && visible.Line(string(r)) != string(r) {
				t.Errorf("%s sends %U to the terminal: %q", line, r, text)
				break
			}
		}
		if strings.Contains(text, "rof pay") {
			shown++
			require.NotContains(t, text, "\x1b", line)
		}
	}
	require.GreaterOrEqual(t, shown, 10, "the texts are shown")
	require.NoFileExists(t, filepath.Join(d.dir, "pwned"))
}
