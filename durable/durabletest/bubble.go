package durabletest

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
)

// inBubble calls f with virtual time, if that can be had: t must be a *testing.T.
// In a bubble already, f is called in that.
func (c *config) inBubble(t testing.TB, f func(t testing.TB)) {
	t.Helper()
	tt, ok := t.(*testing.T)
	if c.realTime || !ok {
		c.realTime = true
		f(t)
		return
	}
	if !bubbled(func() { synctest.Test(tt, func(t *testing.T) { f(t) }) }) {
		f(t)
	}
}

// bubbled calls test, which makes a bubble, and reports whether it could: a bubble
// within a bubble is refused, before anything has run in it. The runtime offers no
// other way to ask.
func bubbled(test func()) (could bool) {
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		if !strings.Contains(fmt.Sprint(v), "within a synctest bubble") {
			panic(v)
		}
		could = false
	}()
	could = true
	test()
	return could
}
