package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/lib/pq"

	"github.com/holdfast-dev/holdfast/store"
)

// complete checks dsn and sets what must not be left to the driver's defaults,
// which may change in its next release: whether to use TLS, and how long to
// wait for a server that does not answer.
//
// Without an sslmode, a server on this machine gets "prefer" (it rarely has
// TLS, and there is no network to eavesdrop on), any other server "require".
func complete(dsn string) (string, error) {
	cfg, err := pq.NewConfig(dsn)
	if err != nil {
		return "", fmt.Errorf("postgres: open: %w; a connection string is a URL, postgres://user@host/database, or pairs, host=… dbname=…: %w", masked(dsn, err), store.ErrInvalid)
	}
	if cfg.SSLMode == "" {
		mode := "require"
		if local(cfg) {
			mode = "prefer"
		}
		dsn = with(dsn, "sslmode", mode)
	}
	if cfg.ConnectTimeout <= 0 {
		dsn = with(dsn, "connect_timeout", fmt.Sprint(int(connectTimeout/time.Second)))
	}
	if cfg.ApplicationName == "" {
		dsn = with(dsn, "application_name", "holdfast")
	}
	return dsn, nil
}

// local reports whether all hosts of cfg are this machine.
func local(cfg pq.Config) bool {
	hosts := []pq.ConfigMultihost{{Host: cfg.Host, Hostaddr: cfg.Hostaddr}}
	hosts = append(hosts, cfg.Multi...)
	for _, h := range hosts {
		addr := h.Hostaddr
		if addr == (netip.Addr{}) {
			if h.Host == "localhost" || h.Host == "" || filepath.IsAbs(h.Host) || strings.HasPrefix(h.Host, "@") {
				continue
			}
			addr, _ = netip.ParseAddr(h.Host)
		}
		if !addr.IsLoopback() {
			return false
		}
	}
	return true
}

func isURL(dsn string) bool {
	return strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://")
}

// with adds a parameter that dsn does not have yet; dsn is known to parse.
func with(dsn, parameter, value string) string {
	if !isURL(dsn) {
		return dsn + " " + parameter + "=" + value
	}
	u, err := url.Parse(dsn)
	if err != nil {
		return dsn // pq parses URLs in its own way and reports errors when it connects
	}
	q := u.Query()
	q.Set(parameter, value)
	u.RawQuery = q.Encode()
	return u.String()
}

var (
	urlPassword = regexp.MustCompile(`(?i)(postgres(?:ql)?://[^:/?#@\s"]*:)[^\s"]*@`)
	keyPassword = regexp.MustCompile(`(?i)(password\s*=\s*)('(?:[^'\\]|\\.)*'|[^\s&"]+)`)
)

// maskedError has the text of an error without the password. For errors.Is and
// errors.As it is the original error.
type maskedError struct {
	text string
	err  error
}

func (e *maskedError) Error() string { return e.text }

// There are Is and As but no Unwrap, so that printing the chain cannot reveal
// the password.
func (e *maskedError) Is(target error) bool { return errors.Is(e.err, target) }
func (e *maskedError) As(target any) bool   { return errors.As(e.err, target) }

// noURL takes the place of a parser's error, which quotes what it has stumbled over: often a part
// of the password.
const noURL = "postgres: the connection string is no URL: in a password, all but letters and digits are written as %XX, such as %2F for /"

// masked removes every trace of a password from err. When a connection string
// does not parse, the parser's error quotes it verbatim.
func masked(dsn string, err error) error {
	if err == nil {
		return nil
	}
	if _, no := url.Parse(dsn); no != nil && isURL(dsn) {
		return &maskedError{text: noURL, err: err}
	}
	text := err.Error()
	clean := text
	for _, secret := range secrets(dsn) {
		clean = strings.ReplaceAll(clean, secret, "***")
	}
	clean = urlPassword.ReplaceAllString(clean, "${1}***@")
	clean = keyPassword.ReplaceAllString(clean, "${1}***")
	if clean == text {
		return err
	}
	return &maskedError{text: clean, err: err}
}

// secrets returns what a password may look like in a text about dsn.
func secrets(dsn string) []string {
	var list []string
	add := func(s string) {
		if s != "" {
			list = append(list, s, url.QueryEscape(s), url.PathEscape(s))
		}
	}
	if cfg, err := pq.NewConfig(dsn); err == nil {
		add(cfg.Password)
	}
	if u, err := url.Parse(dsn); err == nil && u.User != nil {
		p, _ := u.User.Password()
		add(p)
	}
	// Whatever is between the user's colon and the last "@" counts as the password, and so do its parts:
	// one like 12/ab, if it is not escaped, reads as the port 12 and a path.
	if isURL(dsn) {
		_, rest, _ := strings.Cut(dsn, "://")
		if at := strings.LastIndex(rest, "@"); at >= 0 {
			if _, p, ok := strings.Cut(rest[:at], ":"); ok {
				add(p)
				for _, part := range strings.FieldsFunc(p, func(r rune) bool { return strings.ContainsRune("/?#@", r) }) {
					add(part)
				}
			}
		}
	}
	if m := keyPassword.FindStringSubmatch(dsn); m != nil {
		add(strings.Trim(m[2], "'"))
	}
	return list
}

// dialer notices a dead peer within about half a minute, where the defaults of an
// operating system take hours, and a live but silent peer after silence; 0: never.
type dialer struct{ silence time.Duration }

func (d dialer) Dial(network, address string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, address)
}

func (d dialer) DialTimeout(network, address string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return d.DialContext(ctx, network, address)
}

func (d dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := dial(ctx, network, address)
	if err != nil || d.silence <= 0 {
		return c, err
	}
	return &impatientConn{Conn: c, silence: d.silence}, nil
}

func dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 4},
		Control:         limitUnacknowledged,
	}
	return d.DialContext(ctx, network, address)
}

// impatientConn gives up on a server that neither answers nor accepts data: the
// operating system of a stopped server process keeps acknowledging packets. A
// connection is read only while an answer is awaited, so each wait has its own
// limit. One goroutine uses it at a time.
type impatientConn struct {
	net.Conn
	silence time.Duration
	fixed   bool // a deadline is set, while the connection is made
}

func (c *impatientConn) SetDeadline(t time.Time) error {
	c.fixed = !t.IsZero()
	return c.Conn.SetDeadline(t)
}

func (c *impatientConn) Read(b []byte) (int, error) {
	if !c.fixed {
		if err := c.SetReadDeadline(time.Now().Add(c.silence)); err != nil {
			return 0, err
		}
	}
	return c.Conn.Read(b)
}

func (c *impatientConn) Write(b []byte) (int, error) {
	if !c.fixed {
		if err := c.SetWriteDeadline(time.Now().Add(c.silence)); err != nil {
			return 0, err
		}
	}
	return c.Conn.Write(b)
}

func openDB(c driver.Connector) *sql.DB { return sql.OpenDB(c) }
