package conformance_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
)

// recorder takes the failures of a case that is meant to fail. What it does not
// override it leaves to the test that runs it.
type recorder struct {
	testing.TB
	name string

	mu       sync.Mutex
	failures []string
	cleanups []func()
}

// record runs fn as a test of its own would be run, and returns its failures.
func record(t testing.TB, name string, fn func(testing.TB)) []string {
	r := &recorder{TB: t, name: name}
	done := make(chan struct{})
	go func() { // FailNow ends the goroutine
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				r.add(fmt.Sprintf("panic: %v", p))
			}
		}()
		fn(r)
	}()
	<-done
	for i := len(r.cleanups) - 1; i >= 0; i-- {
		r.cleanups[i]()
	}
	return r.failures
}

func (r *recorder) add(s string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, s)
}

func (r *recorder) Name() string                 { return r.name }
func (r *recorder) Helper()                      {}
func (r *recorder) Log(...any)                   {}
func (r *recorder) Logf(string, ...any)          {}
func (r *recorder) Error(args ...any)            { r.add(fmt.Sprint(args...)) }
func (r *recorder) Errorf(f string, args ...any) { r.add(fmt.Sprintf(f, args...)) }
func (r *recorder) Fail()                        { r.add("failed") }
func (r *recorder) Fatal(args ...any)            { r.add(fmt.Sprint(args...)); runtime.Goexit() }
func (r *recorder) Fatalf(f string, args ...any) { r.add(fmt.Sprintf(f, args...)); runtime.Goexit() }
func (r *recorder) FailNow()                     { r.add("failed"); runtime.Goexit() }

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.failures) > 0
}

func (r *recorder) Cleanup(fn func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, fn)
}
