package goroutine_test

import (
	"bytes"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/goroutine"
	"github.com/holdfast-dev/holdfast/internal/guard"
)

// at calls fn that many frames further up the stack.
func at(depth int, fn func()) {
	if depth == 0 {
		fn()
		return
	}
	at(depth-1, fn)
	runtime.KeepAlive(fn)
}

func TestTheBottomOfTheStackTellsTheKind(t *testing.T) {
	called := func(begin func(func())) func(int) goroutine.Kind {
		return func(depth int) goroutine.Kind {
			kind := make(chan goroutine.Kind)
			begin(func() { at(depth, func() { kind <- goroutine.Calling() }) })
			return <-kind
		}
	}
	guarded := func(fn func()) { go func() { _ = guard.Call(fn) }() }
	for depth := range 200 { // the frames are read in pieces of 64
		require.Equal(t, goroutine.OfRun, called(goroutine.ForRun)(depth), depth)
		require.Equal(t, goroutine.OfBranch, called(goroutine.ForBranch)(depth), depth)
		require.Equal(t, goroutine.OfBranch, called(guarded)(depth), depth)
		require.Equal(t, goroutine.OfUser, called(func(fn func()) { go fn() })(depth), depth)
	}
	require.False(t, goroutine.Ours())
	ours := make(chan bool)
	goroutine.ForRun(func() { ours <- goroutine.Ours() })
	require.True(t, <-ours)
}

func TestTheIDIsTheOneOfStackTraces(t *testing.T) {
	var text [100]byte
	trace := text[:runtime.Stack(text[:], false)]
	require.True(t, bytes.HasPrefix(trace, []byte("goroutine "+strconv.FormatUint(goroutine.ID(), 10)+" ")), "%s", trace)
}

func TestTheCallerOutsideIsNoneOfTheEngine(t *testing.T) {
	const engine = "github.com/holdfast-dev/holdfast/internal/goroutine_test"
	outside := func(begin func(func())) string {
		source := make(chan string)
		begin(func() { source <- goroutine.CallerOutside(engine) })
		return <-source
	}
	require.Empty(t, outside(goroutine.ForRun), "the engine has made the call")
	require.Empty(t, outside(goroutine.ForBranch), "the engine has made the call")
	require.Regexp(t, `/testing/testing\.go:\d+$`, goroutine.CallerOutside(engine))
	require.Regexp(t, `goroutine_test\.go:\d+$`, goroutine.CallerOutside("another"))
}
