//go:build cgo

package sqlite

import "golang.org/x/sys/unix"

// bootID identifies this boot of the machine.
func bootID() string {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return ""
	}
	return id
}

// localDisk asks the system whether dir is on a local file system.
func localDisk(dir string) bool {
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && st.Flags&unix.MNT_LOCAL != 0
}
