package postgres

import (
	"context"
	"database/sql/driver"
	"fmt"
	"sync"
)

// prepared has the statement that appends the outcome of a transactional step, prepared on
// connections of our own: to plan it takes the server longer than to carry it out.
type prepared struct {
	mu sync.Mutex
	on map[driver.Conn]*appender
}

// appender is the statement on one connection.
type appender struct {
	stmt driver.Stmt
	uses int
}

// maxUses is how often a plan is used. These connections have the settings of the program,
// and one that was made while the tables were nearly empty may scan them, see
// sessionSettings.
const maxUses = 200

// take returns the statement for a connection. It is the caller's until give.
func (p *prepared) take(dc driver.Conn, text string) (*appender, error) {
	p.mu.Lock()
	a := p.on[dc]
	delete(p.on, dc)
	p.mu.Unlock()
	if a != nil && a.uses < maxUses {
		return a, nil
	}
	if a != nil {
		if err := a.stmt.Close(); err != nil {
			return nil, err
		}
	}
	st, err := dc.(driver.ConnPrepareContext).PrepareContext(context.Background(), text)
	if err != nil {
		return nil, err
	}
	return &appender{stmt: st}, nil
}

// give keeps the statement for the next transaction on the connection. most is how many
// connections there may be: if more are known, some have been closed, which nobody tells.
func (p *prepared) give(dc driver.Conn, a *appender, most int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.on == nil || len(p.on) >= most {
		p.on = map[driver.Conn]*appender{}
	}
	p.on[dc] = a
}

// append carries out append_within.
func (t *stepTx) append(q *userTx, args []driver.Value) (n int64, err error) {
	const name = "append_within"
	s := t.s
	if !s.txs.ownsDB {
		return q.exec(name, args...)
	}
	if err := s.fits(name, args); err != nil {
		return 0, err
	}
	s.count(name)
	raw := t.conn.Raw(func(c any) error {
		dc := c.(driver.Conn)
		var a *appender
		if a, err = s.txs.take(dc, s.sql.Text(name)); err != nil {
			return nil // the pool learns of a lost connection when the transaction ends
		}
		var r driver.Result
		if r, err = a.stmt.(driver.StmtExecContext).ExecContext(q.ctx, new(session).arguments(args)); err == nil {
			n, err = r.RowsAffected()
		}
		a.uses++
		switch sqlState(err) {
		case "":
			if err != nil {
				return nil // the connection is lost
			}
		case "26000", "0A000":
			return nil // the body has removed it from the session, or its tables have changed
		}
		s.txs.give(dc, a, cap(s.txs.permits))
		return nil
	})
	if err == nil {
		err = raw
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return n, nil
}
