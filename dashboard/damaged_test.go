package dashboard_test

import (
	"path/filepath"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// A person who looks at a run that has failed is to learn that it cannot be resumed before trying to.
func TestADamagedRunIsShownAsDamaged(t *testing.T) {
	for name, c := range map[string]struct{ change, text string }{
		"an event was changed": {`UPDATE durable_events SET sum = sum + 1 WHERE key = 'reserve'`, "its checksum does not fit"},
		"an event is missing":  {`DELETE FROM durable_events WHERE key = 'reserve'`, "it is missing between 2 and 4"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "runs.db")
			st, err := sqlite.Open(file)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, st.Close()) })
			s := open(t, st, dashboard.Options{})
			s.failed("r")
			db, err := sqlx.Open("sqlite3", file)
			require.NoError(t, err)
			_, err = db.Exec(c.change)
			require.NoError(t, err)
			require.NoError(t, db.Close())
			s.failed("whole")

			run, err := s.c.GetRun(t.Context(), "r")
			require.NoError(t, err)
			require.Equal(t, &client.Damage{Seq: 3, Text: c.text}, run.Damage)
			says := "Event 3 is damaged: " + c.text
			require.Contains(t, run.Verdict, says+". Nothing after it is believed")
			page := s.send("GET", "/runs/r?panel=resume", "", "Accept: text/html").body
			require.Contains(t, page, says)
			require.Contains(t, page, "Failed, damaged")
			require.NotContains(t, page, "Failed, can be resumed")
			require.Contains(t, page, "checkpoints repair r --dry-run")
			require.NotContains(t, page, "?panel=fork")
			list := s.send("GET", "/", "", "Accept: text/html").body
			require.Contains(t, list, says)

			sound, err := s.c.GetRun(t.Context(), "whole")
			require.NoError(t, err)
			require.Nil(t, sound.Damage)
			require.Contains(t, s.send("GET", "/runs/whole", "", "Accept: text/html").body, "Failed, can be resumed")
		})
	}
}
