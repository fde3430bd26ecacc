package durable

import (
	"os"
	"sync"
)

// hostName asks once: every start signs.
var hostName = sync.OnceValue(func() string {
	name, _ := os.Hostname()
	return name
})

// sign has an event that claims a run say who claims it. The executor's record in
// the store goes when its process ends; what the history says of who had the run
// must not need it.
func (e *Engine) sign(d *eventData) *eventData {
	d.Executor, d.Name, d.Host, d.PID = e.id, e.options.Name, hostName(), os.Getpid()
	return d
}
