package cli_test

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// On a full disk SQLite cannot even make its index, or the heartbeat has no room.
func TestAFileOnAFullDiskIsLookedAtInTheTerminal(t *testing.T) {
	for name, room := range map[string]int64{"no room": 0, "room for the index alone": 40 << 10} {
		t.Run(name, func(t *testing.T) {
			d := within(t, "SHOP_DB=app.db", "DURABLE_STORE=")
			if err := syscall.Mount("tmpfs", d.dir, "tmpfs", 0, "size=1m,mode=0755"); err != nil {
				t.Skip("a small disk cannot be mounted: run as root")
			}
			defer func() { require.NoError(t, syscall.Unmount(d.dir, syscall.MNT_DETACH)) }()
			d.ok("shop enqueue mail-1")
			interrupted(d)
			fill, err := os.Create(filepath.Join(d.dir, "fill"))
			require.NoError(t, err)
			n, err := io.Copy(fill, &zeros{})
			require.ErrorIs(t, err, syscall.ENOSPC)
			require.NoError(t, fill.Truncate(n-room))
			require.NoError(t, fill.Close())
			d = d.with("DURABLE_STORE=app.db")
			before, err := os.ReadFile(filepath.Join(d.dir, "app.db"))
			require.NoError(t, err)
			for _, line := range []string{"durable ls", "durable show order-42", "durable stuck; true", "durable checkpoints export order-42", "durable ls"} {
				a := d.ok(line)
				require.Contains(t, a.out, "order-42", line)
				require.Contains(t, a.err, "Only looking: ", line)
				require.Contains(t, a.err, "the disk is full", line)
			}
			a := d.sh("durable cancel order-42")
			require.Equal(t, 4, a.code)
			require.Contains(t, a.err, "The store takes no writes")
			after, err := os.ReadFile(filepath.Join(d.dir, "app.db"))
			require.NoError(t, err)
			require.Equal(t, before, after)
		})
	}
}

type zeros struct{}

func (*zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }
