//go:build cgo && !linux && !darwin

package sqlite

import "os"

// turnsWork: writers of several processes are not put in order here.
const turnsWork = false

func lock(*os.File, func() bool) bool { return false }
func tryLock(*os.File) bool           { return false }
func unlock(*os.File)                 {}
