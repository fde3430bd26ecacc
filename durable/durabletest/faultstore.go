package durabletest

import (
	"context"

	"github.com/holdfast-dev/holdfast/store"
)

// The calls of a FaultStore, each of which a fault may meet.

// Commit is part of store.Store.
func (f *FaultStore) Commit(ctx context.Context, batch []store.Change) (errs []error) {
	err := f.call(ctx, "commit", batch, func() error {
		errs = f.Store.Commit(ctx, batch)
		return nil
	})
	if err != nil {
		errs = make([]error, len(batch))
		for i := range errs {
			errs[i] = err
		}
	}
	return errs
}

// Claim is part of store.Store.
func (f *FaultStore) Claim(ctx context.Context, c store.Claim) ([]store.Run, error) {
	return asked(ctx, f, "claim", func() ([]store.Run, error) { return f.Store.Claim(ctx, c) })
}

// Beat is part of store.Store.
func (f *FaultStore) Beat(ctx context.Context, x store.Executor) (store.Pulse, error) {
	return asked(ctx, f, "beat", func() (store.Pulse, error) { return f.Store.Beat(ctx, x) })
}

// Load is part of store.Store.
func (f *FaultStore) Load(ctx context.Context, id string, c store.Cursor) (*store.History, error) {
	return asked(ctx, f, "load", func() (*store.History, error) { return f.Store.Load(ctx, id, c) })
}

// List is part of store.Store.
func (f *FaultStore) List(ctx context.Context, w store.Filter) (store.Page, error) {
	return asked(ctx, f, "list", func() (store.Page, error) { return f.Store.List(ctx, w) })
}

// Count is part of store.Store.
func (f *FaultStore) Count(ctx context.Context, w store.Filter, by string) (map[string]int64, error) {
	return asked(ctx, f, "count", func() (map[string]int64, error) { return f.Store.Count(ctx, w, by) })
}

// Executors is part of store.Store.
func (f *FaultStore) Executors(ctx context.Context) ([]store.Executor, error) {
	return asked(ctx, f, "executors", func() ([]store.Executor, error) { return f.Store.Executors(ctx) })
}

// Delete is part of store.Store.
func (f *FaultStore) Delete(ctx context.Context, d store.Deletion) (int, error) {
	return asked(ctx, f, "delete", func() (int, error) { return f.Store.Delete(ctx, d) })
}

// Capabilities is part of store.Capable: what the wrapped store can do, with the same faults.
func (f *FaultStore) Capabilities() store.Capabilities {
	c := store.CapabilitiesOf(f.Store)
	c.LateCommitter, c.RunKinds = nil, nil
	if c.Notifier != nil {
		c.Notifier = faultNotifier{f, c.Notifier}
	}
	if c.Loader != nil {
		c.Loader = faultLoader{f, c.Loader}
	}
	if c.Queues != nil {
		c.Queues = faultQueues{f, c.Queues}
	}
	if c.Schedules != nil {
		c.Schedules = faultSchedules{f, c.Schedules}
	}
	if c.Requests != nil {
		c.Requests = faultRequests{f, c.Requests}
	}
	if c.TxCommitter != nil {
		c.TxCommitter = faultTxCommitter{f, c.TxCommitter}
	}
	if c.Transactor != nil {
		c.Transactor = faultTransactor{f, c.Transactor}
	}
	return c
}

type faultNotifier struct {
	*FaultStore
	inner store.Notifier
}

// Notify passes notices on while there is a connection. After one that was missed nothing says so, as
// the contract allows: a heartbeat looks.
func (f faultNotifier) Notify(ctx context.Context, fn func(store.Notice)) error {
	return f.inner.Notify(ctx, func(n store.Notice) {
		if !f.cut() {
			fn(n)
		}
	})
}

type faultLoader struct {
	*FaultStore
	inner store.Loader
}

func (f faultLoader) LoadAll(ctx context.Context, loads []store.RunCursor) (all []store.Loaded) {
	err := f.call(ctx, "load", nil, func() error {
		all = f.inner.LoadAll(ctx, loads)
		return nil
	})
	if err != nil {
		return store.LoadedNothing(len(loads), err)
	}
	return all
}

type faultQueues struct {
	*FaultStore
	inner store.Queues
}

func (f faultQueues) PutQueue(ctx context.Context, q store.Queue) error {
	return f.call(ctx, "queues", nil, func() error { return f.inner.PutQueue(ctx, q) })
}

func (f faultQueues) Queue(ctx context.Context, name string) (store.Queue, error) {
	return asked(ctx, f.FaultStore, "queues", func() (store.Queue, error) { return f.inner.Queue(ctx, name) })
}

func (f faultQueues) Queues(ctx context.Context, names ...string) ([]store.QueueState, error) {
	return asked(ctx, f.FaultStore, "queues", func() ([]store.QueueState, error) { return f.inner.Queues(ctx, names...) })
}

func (f faultQueues) Ahead(ctx context.Context, runID string) (n int64, inLine bool, err error) {
	err = f.call(ctx, "queues", nil, func() error {
		n, inLine, err = f.inner.Ahead(ctx, runID)
		return err
	})
	return n, inLine, err
}

type faultSchedules struct {
	*FaultStore
	inner store.Schedules
}

func (f faultSchedules) PutSchedule(ctx context.Context, s store.Schedule) (store.Schedule, error) {
	return asked(ctx, f.FaultStore, "schedules", func() (store.Schedule, error) { return f.inner.PutSchedule(ctx, s) })
}

func (f faultSchedules) DeleteSchedule(ctx context.Context, name string) (bool, error) {
	return asked(ctx, f.FaultStore, "schedules", func() (bool, error) { return f.inner.DeleteSchedule(ctx, name) })
}

func (f faultSchedules) Schedules(ctx context.Context, names ...string) ([]store.Schedule, error) {
	return asked(ctx, f.FaultStore, "schedules", func() ([]store.Schedule, error) { return f.inner.Schedules(ctx, names...) })
}

func (f faultSchedules) DueSchedules(ctx context.Context, limit int) (store.DueSchedules, error) {
	return asked(ctx, f.FaultStore, "schedules", func() (store.DueSchedules, error) { return f.inner.DueSchedules(ctx, limit) })
}

type faultRequests struct {
	*FaultStore
	inner store.Requests
}

func (f faultRequests) DrainRequests(ctx context.Context, d store.Drain) (store.Drained, error) {
	return asked(ctx, f.FaultStore, "requests", func() (store.Drained, error) { return f.inner.DrainRequests(ctx, d) })
}

func (f faultRequests) DropRequests(ctx context.Context, before store.Time, limit int) (int, error) {
	return asked(ctx, f.FaultStore, "requests", func() (int, error) { return f.inner.DropRequests(ctx, before, limit) })
}

type faultTxCommitter struct {
	*FaultStore
	inner store.TxCommitter
}

func (f faultTxCommitter) CommitIn(ctx context.Context, tx any, c store.Change) error {
	return f.call(ctx, inTransaction, []store.Change{c}, func() error { return f.inner.CommitIn(ctx, tx, c) })
}

type faultTransactor struct {
	*FaultStore
	inner store.Transactor
}

func (f faultTransactor) CommitIn(ctx context.Context, tx any, c store.Change) error {
	return faultTxCommitter{f.FaultStore, f.inner}.CommitIn(ctx, tx, c)
}

func (f faultTransactor) OneWriter() bool { return f.inner.OneWriter() }

func (f faultTransactor) BeginTx(ctx context.Context) (store.Tx, error) {
	var tx store.Tx
	err := f.call(ctx, "transaction", nil, func() (err error) {
		tx, err = f.inner.BeginTx(ctx)
		return err
	})
	if err != nil {
		if tx != nil { // nobody has been told of it
			_ = tx.Rollback()
		}
		return nil, err
	}
	return &faultTx{Tx: tx, f: f.FaultStore}, nil
}

// faultTx is a transaction whose COMMIT a fault may meet.
type faultTx struct {
	store.Tx
	f *FaultStore
}

func (t *faultTx) Commit(c store.Change) error {
	carriedOut := false
	err := t.f.call(context.Background(), inTransaction, []store.Change{c}, func() error {
		carriedOut = true
		return t.Tx.Commit(c)
	})
	if !carriedOut {
		_ = t.Tx.Rollback() // as the database does when the connection is lost
	}
	return err
}

// Again is true for a connection that is lost.
func (t *faultTx) Again(err error) bool { return err == errNoConnection || t.Tx.Again(err) }

// Explain is part of store.TxExplainer.
func (t *faultTx) Explain(err error) error {
	if e, ok := t.Tx.(store.TxExplainer); ok {
		return e.Explain(err)
	}
	return err
}
