package termview_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/termview"
	"github.com/holdfast-dev/holdfast/store/memory"
)

const hostile = "\x1b[2J\x1b[Hgone\r\nnew line\t\x07 \u202egnp.exe \u009b31m \xff 👩‍🚀 naïve 東京"

func TestCleanWritesOutWhatWouldMoveTheCursor(t *testing.T) {
	require.Equal(t, `\x1b[2J\x1b[Hgone\r\nnew line\t\x07 \u202egnp.exe \x9b31m \xff 👩‍🚀 naïve 東京`, termview.Clean(hostile))
	require.Equal(t, "plain 東京", termview.Clean("plain 東京"))
	require.Equal(t, `a\U000e0001`, termview.Clean("a\U000e0001"))
	require.Equal(t, `a\u2028b`, termview.Clean("a\u2028b"))
}

func FuzzClean(f *testing.F) {
	f.Add(hostile)
	f.Fuzz(func(t *testing.T, s string) {
		got := termview.Clean(s)
		require.True(t, utf8.ValidString(got))
		for _, r := range got {
			require.False(t, r < ' ' || r >= 0x7f && r < 0xa0, "%q", got)
		}
		require.Equal(t, got, termview.Clean(got), "it stays as it is")
	})
}

func TestClipCountsCellsAndCutsNoCharacterApart(t *testing.T) {
	require.Equal(t, "東…", termview.Clip("東京都", 4))
	require.Equal(t, "👩‍🚀…", termview.Clip("👩‍🚀👩‍🚀", 3))
	require.Equal(t, "charge", termview.Clip("charge", 6))
	require.Equal(t, "charge", termview.Clip("charge", 0))
	require.Equal(t, "…", termview.Clip("charge", 1))
}

func TestDurationsAreShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0.0s", 240 * time.Millisecond: "0.2s", 5 * time.Second: "5.0s", 10 * time.Second: "10s",
		11*time.Minute + 2*time.Second: "11m2s", -time.Second: "0.0s",
	} {
		require.Equal(t, want, termview.Took(d))
	}
}

// An error, a key and a prompt that want to draw over the screen are shown as
// text, in lines and on the board.
func TestHostileTextsDoNotMoveTheCursor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data, wf := memory.Open(), checkout(&bank{[]error{errors.New(hostile), errors.New(hostile)}}, declared)
		eng, ctx := shop(t, data, wf)
		_, err := wf.Start(ctx, "order-42", hostile)
		require.NoError(t, err)
		var out strings.Builder
		o := termview.Options{Redraw: true, Width: 70, Height: 10}
		screen := newTTY(t, 70)
		board := termview.NewBoard(screen, "order-42", o, words)
		stop := follow(t, eng, termview.New(&out, termview.Options{}, words), 0)
		done := make(chan error, 1)
		go func() { done <- board.Follow(ctx, eng, "order-42", nil) }()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Contains(t, screen.text(), "(2 failed:")
		time.Sleep(5 * time.Second)
		stop()
		require.Contains(t, screen.text(), `approve  Ship \x1b[2J`)
		require.Contains(t, out.String(), `✗ attempt 1 of 5: \x1b[2J\x1b[Hgone\r\nnew line`)
		require.NotContains(t, out.String(), "\x1b")
		require.Equal(t, 8, strings.Count(out.String(), "\n"), out.String())
		require.NoError(t, eng.Close())
		<-done
	})
}

func TestWhatATerminalMayBeToldIsDetected(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/out")
	require.NoError(t, err)
	defer f.Close()
	require.Equal(t, termview.Options{}, termview.Detect(f), "a file")
	require.Equal(t, termview.Options{}, termview.Detect(new(strings.Builder)))

	master, slave, err := pty.Open()
	require.NoError(t, err)
	defer master.Close()
	defer slave.Close()
	require.NoError(t, pty.Setsize(slave, &pty.Winsize{Rows: 24, Cols: 80}))
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	require.Equal(t, termview.Options{Redraw: true, Color: true, Width: 80, Height: 24}, termview.Detect(slave))
	t.Setenv("NO_COLOR", "1")
	require.Equal(t, termview.Options{Redraw: true, Width: 80, Height: 24}, termview.Detect(slave))
	t.Setenv("TERM", "dumb")
	require.Equal(t, termview.Options{Width: 80, Height: 24}, termview.Detect(slave))
}
