package durabletest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// inBubble calls f with virtual time, if possible: t must be a *testing.T. If there
// is a bubble already, f is called in that one. left names the user's goroutines
// that do not end: they would end the test binary with a panic that names nothing.
func (c *config) inBubble(t testing.TB, f func(t testing.TB)) (left error) {
	t.Helper()
	tt, ok := t.(*testing.T)
	if c.realTime || !ok {
		c.realTime = true
		f(t)
		return nil
	}
	look := func(t testing.TB) {
		before := userGoroutines()
		defer func() { left = lingering(before) }()
		f(t)
	}
	if !bubbled(func() { synctest.Test(tt, func(t *testing.T) { look(t) }) }, &left) {
		look(t)
	}
	return left
}

// bubbled calls test, which creates a bubble, and reports whether it could: the
// runtime refuses a bubble within a bubble, before anything has run in it, and
// offers no other way to ask. Goroutines that remain when the bubble ends are
// not a panic: left then says so.
func bubbled(test func(), left *error) (could bool) {
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		switch text := fmt.Sprint(v); {
		case strings.Contains(text, "within a synctest bubble"):
			could = false
		case strings.Contains(text, "blocked goroutines remain"):
			if *left == nil {
				*left = errors.New("durabletest: goroutines that the test has started have not ended: the workflow, a body or a fake leaves them behind")
			}
		default:
			panic(v)
		}
	}()
	could = true
	test()
	return could
}

// lingering waits for the user's new goroutines, as long as they only sleep, and
// names one that does not end.
func lingering(before []goroutine) error {
	for pause := time.Millisecond; pause < 100*time.Hour; pause *= 4 {
		synctest.Wait()
		if len(newOf(userGoroutines(), before)) == 0 {
			return nil
		}
		time.Sleep(pause)
	}
	g := newOf(userGoroutines(), before)
	if len(g) == 0 {
		return nil
	}
	return fmt.Errorf("durabletest: a goroutine does not end: it is blocked (%s) in %s%s\nWhat a workflow function starts must end with it, and what a body starts must end with the body, when its ctx ends. To do two things at once use durable.Go, durable.Map or durable.First", g[0].state, g[0].at, g[0].startedAt())
}
