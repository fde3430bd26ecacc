package everystore_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/holdfast-dev/holdfast/store"
)

// A death is when a process is killed: just before or just after the write that
// records what label says or, without a label, the nth write of its life.
type death struct {
	label string
	nth   int
	after bool
}

func (d death) String() string {
	side, what := "before", d.label
	if d.after {
		side = "after"
	}
	if what == "" {
		what = fmt.Sprintf("write %d", d.nth)
	}
	return side + " " + what
}

// A process is the way of one process to its store. It is killed at one write;
// from then on every call fails, and nothing that its code still does counts.
//
// Writes are told apart by what they record, and not only by their number: which
// of them share a commit depends on the moment, what there is to be recorded
// does not.
type process struct {
	store.Store
	id   string // of the root run, which stands as "r" in labels
	at   *death // nil: it is not killed
	kill context.CancelFunc

	mu     sync.Mutex
	dead   bool
	writes int
	times  map[string]int
	news   chan struct{} // closed, and made anew, with each write
	// recordedBy are the labels of each write of this life, in order.
	recordedBy [][]string
}

func newProcess(st store.Store, id string, at *death, kill context.CancelFunc) *process {
	return &process{Store: st, id: id, at: at, kill: kill, times: map[string]int{}, news: make(chan struct{})}
}

// label names what an event records.
func label(run, root string, e *store.Event) string {
	s := fmt.Sprintf("%s %s", strings.Replace(run, root, "r", 1), e.Type)
	if e.Type == store.StepStarted && bytes.Contains(e.Data, []byte(`"probation":true`)) {
		s = probationLabel + s
	}
	if e.Key != "" {
		s += " " + e.Key
	}
	if e.Attempt > 0 {
		s += fmt.Sprintf(" %d", e.Attempt)
	}
	return s
}

// probationLabel begins the label of a step that begins on record, because an
// earlier process has ended without a word.
const probationLabel = "probation: "

// mailLabel names a message, with its id if that is the same in every trial:
// those of requests, pauses and cancels are the engine's own, and that of a child has the
// moment at which the child was made.
func mailLabel(root string, m *store.Message) string {
	s := fmt.Sprintf("mail to %s: %s", strings.Replace(m.To, root, "r", 1), m.Kind)
	if m.Name != "" {
		s += " " + m.Name
	}
	if m.Kind != store.KindRequest && m.Kind != store.KindPause && m.Kind != store.KindCancel {
		id, _, _ := strings.Cut(m.ID, "@")
		s += " " + strings.Replace(id, root, "r", 1)
	}
	return s
}

// rowLabel begins the label of a write that changes the row alone.
const rowLabel = "row of "

func (p *process) labelsOf(c *store.Change) (labels []string) {
	for i := range c.Events {
		labels = append(labels, label(c.RunID, p.id, &c.Events[i]))
	}
	for i := range c.Start {
		labels = append(labels, p.labelsOf(&c.Start[i])...)
	}
	for i := range c.Send {
		labels = append(labels, mailLabel(p.id, &c.Send[i]))
	}
	if len(labels) == 0 && c.Row != nil && c.Row.Status != nil {
		labels = append(labels, rowLabel+strings.Replace(c.RunID, p.id, "r", 1)+" "+string(*c.Row.Status))
	}
	return labels
}

// numbered tells a label from the same one earlier in this life. The mutex is
// held.
func (p *process) numbered(l string) string {
	if n := p.times[l]; n > 0 {
		return fmt.Sprintf("%s #%d", l, n+1)
	}
	return l
}

// hits reports whether the process dies at a write of these labels. The mutex is
// held.
func (p *process) hits(labels []string) bool {
	switch {
	case p.at == nil:
		return false
	case p.at.label == "":
		return p.writes+1 == p.at.nth
	}
	for _, l := range labels {
		if p.numbered(l) == p.at.label {
			return true
		}
	}
	return false
}

func (p *process) note(labels []string) {
	numbered := make([]string, len(labels))
	for i, l := range labels {
		numbered[i] = p.numbered(l)
		p.times[l]++
	}
	p.recordedBy = append(p.recordedBy, numbered)
	close(p.news)
	p.news = make(chan struct{})
}

func (p *process) die() {
	p.dead = true
	p.kill()
}

func (p *process) isDead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

// alive does f unless the process is dead.
func (p *process) alive(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.dead {
		f()
	}
}

// recorded waits until the label is recorded in this life.
func (p *process) recorded(ctx context.Context, label string) error {
	for {
		p.mu.Lock()
		done, news := p.times[label] > 0, p.news
		p.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (p *process) Commit(ctx context.Context, batch []store.Change) []error {
	closed := make([]error, len(batch))
	for i := range closed {
		closed[i] = store.ErrClosed
	}
	labels := make([][]string, len(batch))
	var all []string
	for i := range batch {
		labels[i] = p.labelsOf(&batch[i])
		all = append(all, labels[i]...)
	}
	p.mu.Lock()
	if p.dead {
		p.mu.Unlock()
		return closed
	}
	hit := p.hits(all)
	if hit && !p.at.after {
		p.die()
		p.mu.Unlock()
		return closed
	}
	p.writes++
	p.mu.Unlock()
	errs := p.Store.Commit(ctx, batch)
	p.mu.Lock()
	defer p.mu.Unlock()
	if hit && !p.dead {
		p.die()
	}
	if p.dead {
		return closed
	}
	all = all[:0]
	for i, err := range errs {
		if err == nil {
			all = append(all, labels[i]...)
		}
	}
	p.note(all)
	return errs
}

// Claim counts as a write if it has taken something. To die before it is to die
// after the write before it.
func (p *process) Claim(ctx context.Context, c store.Claim) ([]store.Run, error) {
	if p.isDead() {
		return nil, store.ErrClosed
	}
	rows, err := p.Store.Claim(ctx, c)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return nil, store.ErrClosed
	}
	if len(rows) == 0 {
		return rows, err
	}
	var labels []string
	for i := range rows {
		labels = append(labels, label(rows[i].ID, p.id, rows[i].Last))
	}
	if p.hits(labels) {
		p.die()
		return nil, store.ErrClosed
	}
	p.writes++
	p.note(labels)
	return rows, err
}

func (p *process) Beat(ctx context.Context, x store.Executor) (store.Pulse, error) {
	if p.isDead() {
		return store.Pulse{}, store.ErrClosed
	}
	return p.Store.Beat(ctx, x)
}

func (p *process) Load(ctx context.Context, id string, c store.Cursor) (*store.History, error) {
	if p.isDead() {
		return nil, store.ErrClosed
	}
	return p.Store.Load(ctx, id, c)
}

func (p *process) List(ctx context.Context, f store.Filter) (store.Page, error) {
	if p.isDead() {
		return store.Page{}, store.ErrClosed
	}
	return p.Store.List(ctx, f)
}

func (p *process) Executors(ctx context.Context) ([]store.Executor, error) {
	if p.isDead() {
		return nil, store.ErrClosed
	}
	return p.Store.Executors(ctx)
}

// Notify implements store.Notifier, as every backend does.
func (p *process) Notify(ctx context.Context, fn func(store.Notice)) error {
	return p.Store.(store.Notifier).Notify(ctx, func(n store.Notice) {
		if !p.isDead() {
			fn(n)
		}
	})
}
