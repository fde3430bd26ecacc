package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
)

// footprint is the memory of a process, in bytes, after it has given back what it can.
type footprint struct {
	heap     uint64 // in use
	resident uint64 // 0 if the system does not report it
}

func footprintNow() (footprint, error) {
	debug.FreeOSMemory() // collects first
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	resident, err := residentMemory()
	return footprint{heap: m.HeapInuse, resident: resident}, err
}

// residentMemory reads VmRSS, which Linux has.
func residentMemory() (uint64, error) {
	f, err := os.Open("/proc/self/status")
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if rest, found := strings.CutPrefix(lines.Text(), "VmRSS:"); found {
			var kib uint64
			if _, err := fmt.Sscanf(rest, "%d kB", &kib); err != nil {
				return 0, fmt.Errorf("VmRSS in /proc/self/status: %w", err)
			}
			return kib << 10, nil
		}
	}
	return 0, errors.New("/proc/self/status has no VmRSS")
}

// growth is in MB.
func growth(before, after uint64) float64 { return (float64(after) - float64(before)) / 1e6 }
