package pgtest

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Disk is a small file system that has a part of a server's data.
type Disk struct{ dir string }

// Confine moves a part of the data, "base" or "pg_wal", to a file system in memory of that many
// MiB, and restarts the server. Where nothing may be mounted it skips t, and says so.
func (c *Cluster) Confine(t testing.TB, part string, size int) *Disk {
	t.Helper()
	if line, _ := DiskLeftOut(); line != "" {
		t.Skip(line)
	}
	d := &Disk{dir: filepath.Join(c.Data(), part)}
	if err := c.Stop(Fast); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	unmount, err := d.mount(c.as, size)
	if err != nil {
		t.Fatalf("pgtest: a small disk: %v", err)
	}
	t.Cleanup(func() {
		if err := errors.Join(c.Stop(Immediate), unmount()); err != nil {
			t.Errorf("pgtest: %v", err)
		}
	})
	if err := c.Restart(); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return d
}

func (d *Disk) ballast() string { return filepath.Join(d.dir, "ballast") }

// Fill fills the disk to the last byte, as others do that use it too.
func (d *Disk) Fill() error {
	f, err := os.OpenFile(d.ballast(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	page := make([]byte, 4096)
	for err == nil {
		_, err = f.Write(page)
	}
	if errors.Is(err, syscall.ENOSPC) {
		err = nil
	}
	return errors.Join(err, f.Close())
}

// Empty makes room again.
func (d *Disk) Empty() error { return os.Remove(d.ballast()) }
