package conformance_test

import (
	"context"
	"iter"
	"syscall"

	"github.com/holdfast-dev/holdfast/store"
)

// handsOutUnmappedMemory yields payloads in memory that is gone with the range, as
// a store on a mapped file does that hands out its pages.
func handsOutUnmappedMemory() func(store.Store) store.Store {
	return ranges(func(_ store.Store, _ context.Context, _ string, events iter.Seq2[store.Event, error]) iter.Seq2[store.Event, error] {
		return func(yield func(store.Event, error) bool) {
			pages, err := syscall.Mmap(-1, 0, 1<<20, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
			if err != nil {
				yield(store.Event{}, err)
				return
			}
			defer func() { _ = syscall.Munmap(pages) }() // it was mapped
			used := 0
			for e, err := range events {
				if n := len(e.Payload); n > 0 && used+n <= len(pages) {
					copy(pages[used:], e.Payload)
					e.Payload = pages[used : used+n : used+n]
					used += n
				}
				if !yield(e, err) {
					return
				}
			}
		}
	})()
}
