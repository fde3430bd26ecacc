package target

import (
	"context"
	"errors"
	"net/url"
	"strings"

	"github.com/holdfast-dev/holdfast/cli/internal/looking"
	"github.com/holdfast-dev/holdfast/cli/internal/show"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// A Place names what a command acts on: a store, a server or, with neither, the engine
// that the commands are mounted with.
type Place struct {
	Store, Server, Token string
	From                 string // what named it, for messages
	secret               bool   // it came from a place that others cannot see
}

// Flags are the flags that name what a command acts on.
type Flags struct{ Store, Server, Profile string }

// targetVariables name what commands act on when no flag does; the first that is set
// counts.
var targetVariables = []string{"DURABLE_STORE", "DURABLE_SERVER", "DURABLE_PROFILE"}

// Find decides what a command acts on: a flag, the environment, the mounted
// engine, the default profile; the first wins.
func Find(f *Flags, getenv func(string) string, mounted bool) (Place, error) {
	named := 0
	for _, v := range []string{f.Store, f.Server, f.Profile} {
		if v != "" {
			named++
		}
	}
	if named > 1 {
		return Place{}, show.Usage("name one of --store, --server and --profile, not two")
	}
	token := getenv("DURABLE_TOKEN")
	switch {
	case f.Store != "":
		if hasPassword(f.Store) {
			return Place{}, &show.Failure{Code: "password", Exit: show.ExitUsage, Message: "A password in --store would be seen by everybody on this machine: " + Mask(f.Store), Next: "Put the DSN into DURABLE_STORE, or into a profile of durable.yaml."}
		}
		return Place{Store: f.Store, From: "--store"}, nil
	case f.Server != "":
		return Place{Server: f.Server, Token: token, From: "--server"}, nil
	case f.Profile != "":
		return profilePlace(f.Profile, true, getenv)
	}
	if v := getenv("DURABLE_STORE"); v != "" {
		return Place{Store: v, From: "DURABLE_STORE", secret: true}, nil
	}
	if v := getenv("DURABLE_SERVER"); v != "" {
		return Place{Server: v, Token: token, From: "DURABLE_SERVER"}, nil
	}
	if v := getenv("DURABLE_PROFILE"); v != "" {
		return profilePlace(v, true, getenv)
	}
	if mounted {
		return Place{From: "this program"}, nil
	}
	return profilePlace("default", false, getenv)
}

// hasPassword reports whether a DSN holds a password.
func hasPassword(dsn string) bool { return Mask(dsn) != dsn }

// Mask returns a DSN without its password, fit to be shown.
func Mask(dsn string) string {
	u, err := url.Parse(dsn)
	if err == nil && u.Scheme != "" && !hides(dsn) {
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
	if scheme, rest, ok := strings.Cut(dsn, "://"); ok { // not a URL that can be parsed
		if i := strings.LastIndex(rest, "@"); i >= 0 && strings.Contains(rest[:i], ":") {
			return scheme + "://xxxxx@" + rest[i+1:]
		}
	}
	return dsn
}

// hides reports whether a URL has a password that is not escaped, such as 12/ab: what parses then
// is a port and a path.
func hides(dsn string) bool {
	_, rest, _ := strings.Cut(dsn, "://")
	end, at := strings.IndexAny(rest, "/?#"), strings.LastIndex(rest, "@")
	return end >= 0 && at > end && strings.Contains(rest[:end], ":") && !strings.Contains(rest[:at], "=")
}

// Words returns the flags that name the same target again.
func (f *Flags) Words(getenv func(string) string) []string {
	switch {
	case f.Store != "" && !hasPassword(f.Store):
		return []string{"--store", f.Store}
	case f.Server != "":
		return []string{"--server", f.Server}
	case f.Profile != "":
		return []string{"--profile", f.Profile}
	case f.Store != "":
		return nil // a password is printed nowhere
	}
	// The shell that the command is pasted into may lack the variable.
	for _, name := range targetVariables {
		v := getenv(name)
		switch {
		case v == "":
			continue
		case name != "DURABLE_PROFILE" && hasPassword(v):
			return nil
		}
		return []string{"--" + strings.ToLower(strings.TrimPrefix(name, "DURABLE_")), v}
	}
	return nil
}

// An Opener opens a store by its DSN.
type Opener func(ctx context.Context, dsn string) (store.Store, error)

// Open returns a target on a store, which is closed with it. A store that takes no writes, or on which no
// engine opens, is opened by look, if there is one, to be looked at; why says what kept it from more.
func Open(ctx context.Context, open, look Opener, dsn string, c *show.Commands) (l *Local, why, err error) {
	if l, err = opened(ctx, open, dsn, c); err == nil {
		return l, nil, nil
	}
	if look == nil || !errors.Is(err, store.ErrReadOnly) && !errors.Is(err, durable.ErrUnavailable) {
		return nil, nil, err
	}
	l, failed := opened(ctx, func(ctx context.Context, dsn string) (store.Store, error) {
		st, err := look(ctx, dsn)
		if err != nil {
			return nil, err
		}
		return looking.At(st), nil
	}, dsn, c)
	switch {
	case failed == nil:
		return l, err, nil
	case errors.Is(failed, store.ErrSchema):
		return nil, nil, failed
	}
	return nil, nil, err
}

func opened(ctx context.Context, open Opener, dsn string, c *show.Commands) (*Local, error) {
	st, err := open(ctx, dsn)
	if err != nil {
		return nil, err
	}
	l, err := OpenLocal(ctx, st, c)
	if err != nil {
		_ = st.Close()
		return nil, err
	}
	l.owned = st
	return l, nil
}

// Unset returns the beginning of a command for a program that is to act on its own
// store: the environment of the shell it is pasted into may name another one.
func Unset(getenv func(string) string) string {
	words := []string{"env"}
	for _, name := range targetVariables {
		if getenv(name) != "" {
			words = append(words, "-u", name)
		}
	}
	if len(words) == 1 {
		return ""
	}
	return strings.Join(words, " ") + " "
}
