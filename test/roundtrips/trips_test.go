package roundtrips

import (
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/test/pgtest/proxy"
)

// trips are the requests that a store sends to the server and waits for. Notices are sent beside
// what waits.
type trips struct {
	mu  sync.Mutex
	sql []string
}

func (c *trips) policy(r proxy.Request) proxy.Action {
	text := strings.Join(r.SQL, "; ")
	if r.Executes && !strings.Contains(text, "pg_notify") {
		c.mu.Lock()
		c.sql = append(c.sql, text)
		c.mu.Unlock()
	}
	return proxy.Pass
}

// during returns what was sent while f ran.
func (c *trips) during(f func()) []string {
	c.mu.Lock()
	before := len(c.sql)
	c.mu.Unlock()
	f()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sql[before:]
}

// all returns what was sent so far.
func (c *trips) all() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sql[:len(c.sql):len(c.sql)]
}

const (
	waitFor = 30 * time.Second
	tick    = time.Millisecond
)
