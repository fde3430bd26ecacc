package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
)

// profiles is the directory of -profile; empty: nothing is profiled.
var profiles string

// profiled calls fn, and writes a profile of the CPU time that the process spends meanwhile to a
// file in dir that is named after what and the process.
func profiled(dir, what string, fn func() error) (err error) {
	if dir == "" {
		return fn()
	}
	f, err := os.Create(filepath.Join(dir, fmt.Sprintf("%s-%d.pprof", what, os.Getpid())))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := pprof.StartCPUProfile(f); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	return fn()
}
