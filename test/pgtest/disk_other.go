//go:build !linux

package pgtest

import "errors"

// DiskLeftOut says that the tests of a full disk are left out.
func DiskLeftOut() (line string, err error) {
	return "the tests of a PostgreSQL whose disk is full were left out: only Linux mounts their disks", nil
}

func (*Disk) mount(*account, int) (func() error, error) { return nil, errors.ErrUnsupported }
