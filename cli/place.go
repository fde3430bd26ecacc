package cli

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// A place is what a command acts on: a store, a server, or with neither the
// engine the commands are mounted with.
type place struct {
	store, server, token string
	from                 string // what named it, for messages
	secret               bool   // it came from where others do not see it
}

// place decides what the command acts on: a flag, the environment, the mounted
// engine, the default profile; the first wins.
func (c *call) place() (place, error) {
	f := &c.flags
	named := 0
	for _, v := range []string{f.store, f.server, f.profile} {
		if v != "" {
			named++
		}
	}
	if named > 1 {
		return place{}, usage("name one of --store, --server and --profile, not two")
	}
	token := c.getenv("DURABLE_TOKEN")
	switch {
	case f.store != "":
		if hasPassword(f.store) {
			return place{}, &failure{code: "password", exit: ExitUsage, message: "A password in --store would be seen by everybody on this machine: " + mask(f.store), next: "Put the DSN into DURABLE_STORE, or into a profile of durable.yaml."}
		}
		return place{store: f.store, from: "--store"}, nil
	case f.server != "":
		return place{server: f.server, token: token, from: "--server"}, nil
	case f.profile != "":
		return c.profile(f.profile, true)
	}
	if v := c.getenv("DURABLE_STORE"); v != "" {
		return place{store: v, from: "DURABLE_STORE", secret: true}, nil
	}
	if v := c.getenv("DURABLE_SERVER"); v != "" {
		return place{server: v, token: token, from: "DURABLE_SERVER"}, nil
	}
	if v := c.getenv("DURABLE_PROFILE"); v != "" {
		return c.profile(v, true)
	}
	if c.engine != nil {
		return place{from: "this program"}, nil
	}
	return c.profile("default", false)
}

// hasPassword reports whether a DSN holds a password.
func hasPassword(dsn string) bool { return mask(dsn) != dsn }

// mask returns a DSN as it may be shown.
func mask(dsn string) string {
	if u, err := url.Parse(dsn); err == nil && u.Scheme != "" {
		changed := false
		if _, set := u.User.Password(); u.User != nil && set {
			u.User = url.UserPassword(u.User.Username(), "xxxxx")
			changed = true
		}
		q := u.Query()
		for name := range q {
			if strings.Contains(strings.ToLower(name), "password") {
				q.Set(name, "xxxxx")
				changed = true
			}
		}
		if changed {
			u.RawQuery = q.Encode()
			return u.String()
		}
		return dsn
	}
	at := strings.Index(strings.ToLower(dsn), "password")
	if at >= 0 && strings.Contains(dsn[at:], "=") {
		return dsn[:at] + "password=xxxxx"
	}
	if scheme, rest, ok := strings.Cut(dsn, "://"); ok { // no URL that can be read
		if i := strings.LastIndex(rest, "@"); i >= 0 && strings.Contains(rest[:i], ":") {
			return scheme + "://xxxxx@" + rest[i+1:]
		}
	}
	return dsn
}

// backend returns what opens a DSN.
func (c *call) backend(p place) (Backend, error) {
	for _, b := range c.backends {
		if b.Takes(p.store) {
			return b, nil
		}
	}
	f := usage("nothing here opens the store %s (from %s)", mask(p.store), p.from)
	if own := c.unsetTarget(); c.engine != nil && own != "" && p.from != "--store" {
		f.next = "To act on this program's own store: " + own + quoteAll(slices.Concat(c.mount(), c.path(), c.cmd.Flags().Args()))
	}
	return Backend{}, f
}

// openLocal returns a target on a store: through the mounted engine, or through
// an engine of its own that serves no workflow, and so claims nothing.
func (c *call) openLocal(p place) (*local, error) {
	if p.store == "" {
		return &local{call: c, eng: c.engine, st: c.engine.Store(), mounted: true}, nil
	}
	b, err := c.backend(p)
	if err != nil {
		return nil, err
	}
	st, err := b.Open(c.ctx, p.store)
	if err != nil {
		return nil, c.unreachable(p, err)
	}
	c.done = append(c.done, func() { _ = st.Close() })
	eng, err := durable.Open(c.ctx, st, durable.Options{
		Name:   "durable command line",
		Logger: quietLogger,
	})
	if err != nil {
		return nil, c.unreachable(p, err)
	}
	c.done = append(c.done, func() { _ = eng.Close() })
	return &local{call: c, eng: eng, st: st}, nil
}

func (c *call) unreachable(p place, err error) error {
	f := c.explain(err)
	if f.code == "internal" || f.code == "unavailable" || f.code == "not_found" {
		f = &failure{code: "unavailable", exit: ExitUnreachable, err: err, message: fmt.Sprintf("The store %s cannot be opened: %s", mask(p.store), strings.ReplaceAll(err.Error(), p.store, mask(p.store))), next: "Check " + p.from + "."}
	}
	return f
}

// who says which process an executor is.
func (l *local) who(ctx context.Context, owner string) string {
	executors, err := l.st.Executors(ctx)
	if err != nil {
		return ""
	}
	for _, x := range executors {
		if x.ID == owner {
			return executorName(x)
		}
	}
	return ""
}

func executorName(x store.Executor) string {
	host := x.Host
	if host == "" {
		host = x.Name
	}
	return fmt.Sprintf("pid %d on %s", x.PID, host)
}

// quietLogger is for engines that the commands open for themselves: what there is
// to say of them the commands say.
var quietLogger = slog.New(slog.DiscardHandler)
