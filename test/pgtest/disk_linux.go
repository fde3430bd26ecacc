package pgtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// DiskLeftOut returns what to say where no small disk can be mounted, or "".
func DiskLeftOut() (line string, err error) {
	dir, err := os.MkdirTemp("", "holdfast-disk-")
	if err != nil {
		return "", err
	}
	defer os.Remove(dir)
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		return fmt.Sprintf("the tests of a PostgreSQL whose disk is full were left out: a small disk cannot be mounted (%v). Run them as root", err), nil
	}
	return "", syscall.Unmount(dir, 0)
}

// mount puts a file system over the directory, with what the directory has. It does not outlive
// this process.
func (d *Disk) mount(as *account, size int) (unmount func() error, err error) {
	was := d.dir + ".was"
	if err := errors.Join(os.Rename(d.dir, was), os.Mkdir(d.dir, 0o700)); err != nil {
		return nil, err
	}
	if err := syscall.Mount("tmpfs", d.dir, "tmpfs", 0, fmt.Sprintf("size=%dm,mode=0700", size)); err != nil {
		return nil, err
	}
	watchdog := exec.Command("/bin/sh", "-c", `while read -r line; do :; done; umount -l "$1"`, "sh", d.dir)
	ownGroup(watchdog)
	pipe, errPipe := watchdog.StdinPipe()
	if err := errors.Join(errPipe, watchdog.Start()); err != nil {
		return nil, errors.Join(err, syscall.Unmount(d.dir, syscall.MNT_DETACH))
	}
	unmount = func() error { return errors.Join(pipe.Close(), watchdog.Wait()) }
	if out, err := exec.Command("cp", "-a", was+"/.", d.dir).CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("cp: %w: %s", err, out), unmount())
	}
	return unmount, errors.Join(as.own(d.dir), os.RemoveAll(was))
}
