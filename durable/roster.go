package durable

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// A roster has the runs that this engine executes, and knows for which goroutines
// Close must wait. The dormitory has the unloaded runs, under the same mutex.
type roster struct {
	eng     *Engine
	runners sync.WaitGroup // goroutines of runs
	loops   sync.WaitGroup // of the engine: heartbeat, claims, notices, and background work
	closed  chan struct{}  // closed when Close is done

	mu      sync.Mutex
	runs    map[string]*run
	closing bool
	claims  int                  // in progress
	heard   map[string]bool      // runs that were not here when something was heard of them, during these claims
	own     map[string]time.Time // runs of which a notice tells what this engine has just written; see wrote
}

func (ros *roster) open(e *Engine) {
	ros.eng, ros.runs, ros.closed = e, map[string]*run{}, make(chan struct{})
}

// claiming notes that a claim is in progress until done is called. A run that it takes
// may be heard of before it is here: then it does not rely on what the claim has read of
// its history.
func (ros *roster) claiming() (done func()) {
	ros.mu.Lock()
	defer ros.mu.Unlock()
	ros.claims++
	return func() {
		ros.mu.Lock()
		defer ros.mu.Unlock()
		if ros.claims--; ros.claims == 0 {
			ros.heard = nil
		}
	}
}

// missLocked is called when something is heard of a run that is not executed here. The
// mutex is held.
func (ros *roster) missLocked(id string) {
	if ros.claims > 0 {
		ros.heard = put(ros.heard, id, true)
	}
}

// close makes sure that no run and no goroutine is added any more, and returns the
// runs that are executed. first is false if it was called before.
func (ros *roster) close() (running []*run, first bool) {
	ros.mu.Lock()
	defer ros.mu.Unlock()
	if ros.closing {
		return nil, false
	}
	ros.closing = true
	ros.eng.dormitory.closeLocked()
	return slices.Collect(maps.Values(ros.runs)), true
}

// all returns the runs that are executed.
func (ros *roster) all() []*run {
	ros.mu.Lock()
	defer ros.mu.Unlock()
	return slices.Collect(maps.Values(ros.runs))
}

// count returns how many runs are executed, and how many are dormant.
func (ros *roster) count() (executing, dormant int) {
	ros.mu.Lock()
	defer ros.mu.Unlock()
	return len(ros.runs), len(ros.eng.dormitory.runs)
}

// present returns the ids of all runs that are executed or dormant. stored has, for each of
// those that are known to be in the store, the epoch after the one that they have here; a run
// that is being created is not known to be there.
func (ros *roster) present() (ids []string, stored map[string]int64) {
	ros.mu.Lock()
	defer ros.mu.Unlock()
	n := len(ros.runs) + len(ros.eng.dormitory.runs)
	ids, stored = make([]string, 0, n), make(map[string]int64, n)
	for id, r := range ros.runs {
		ids = append(ids, id)
		if r.isLoaded() {
			stored[id] = r.row.Epoch + 1
		}
	}
	for id, d := range ros.eng.dormitory.runs {
		ids = append(ids, id)
		stored[id] = d.epoch + 1
	}
	return ids, stored
}

// add registers a run as executed here, so that Close waits for it. The run must
// then be launched or abandoned. add fails if the run is executed here already or
// the engine is closing.
func (ros *roster) add(r *run) error {
	ros.mu.Lock()
	defer ros.mu.Unlock()
	return ros.addLocked(r)
}

// addNew is add for a run that is about to be created. A dormant run of that id
// counts as executed: a second start must not lose what happens to it.
func (ros *roster) addNew(r *run) error {
	ros.mu.Lock()
	defer ros.mu.Unlock()
	if ros.eng.dormitory.runs[r.id] != nil {
		return fmt.Errorf("durable: run %s waits here: %w", r.id, store.ErrOwned)
	}
	return ros.addLocked(r)
}

// addLocked is add with the mutex held.
func (ros *roster) addLocked(r *run) error {
	if ros.closing {
		return ErrClosed
	}
	if ros.runs[r.id] != nil {
		return fmt.Errorf("durable: run %s is under way here: %w", r.id, store.ErrOwned)
	}
	// An execution that has lost the run may have left a dormant of an earlier epoch
	// after the run was claimed again.
	ros.eng.dormitory.dropLocked(r.id, r.row.Epoch)
	ros.runs[r.id] = r
	if ros.heard[r.id] {
		r.source.created = nil // there is more to its history now
	}
	ros.eng.claims.Began()
	ros.eng.claims.Enter(&r.row)
	ros.runners.Add(1)
	return nil
}

// forget takes out a run whose execution is over, and reports whether mail has come
// for it meanwhile.
func (ros *roster) forget(r *run) (told bool) {
	ros.mu.Lock()
	if ros.runs[r.id] == r {
		delete(ros.runs, r.id)
	}
	told = r.told
	if ros.eng.dormitory.runs[r.id] == nil {
		ros.eng.claims.Leave(r.id, r.row.Epoch)
	}
	ros.mu.Unlock()
	if r.claimed.counts {
		ros.eng.claims.Vacate()
	}
	return told
}

// The store's notice of what this engine has written comes within this time, and of not more than so
// many runs at once.
const (
	ownNews = 100 * time.Millisecond
	maxOwn  = 1024
)

// wrote says that a notice about a run will tell that this engine puts it in line. It knows then
// whether it takes the run; see Claims.Expect.
func (ros *roster) wrote(id string) {
	ros.mu.Lock()
	defer ros.mu.Unlock()
	if len(ros.own) >= maxOwn {
		clear(ros.own)
	}
	ros.own = put(ros.own, id, time.Now())
}

// isOwn reports whether a notice about a run tells of such a write, once for each. If it errs, because
// someone else has changed the run at this very moment, the next heartbeat finds that.
func (ros *roster) isOwn(id string) bool {
	ros.mu.Lock()
	defer ros.mu.Unlock()
	at, own := ros.own[id]
	delete(ros.own, id)
	return own && time.Since(at) < ownNews
}

// active returns the execution of a run, nil if there is none here.
func (ros *roster) active(id string) *run {
	ros.mu.Lock()
	defer ros.mu.Unlock()
	return ros.runs[id]
}

// find returns the execution of a run, nil if there is none here, and whether the
// run is dormant. A caller that asked for one and then for the other would miss a
// run that is loaded in between.
func (ros *roster) find(id string) (r *run, dormant bool) {
	ros.mu.Lock()
	defer ros.mu.Unlock()
	if r = ros.runs[id]; r == nil {
		ros.missLocked(id)
	}
	return r, ros.eng.dormitory.runs[id] != nil
}

// listening is like find, and also notes that mail has come for the run. The
// execution may be a start whose run turns out to exist already, and that will never
// execute it: because of the note, the run is claimed.
func (ros *roster) listening(id string) (r *run, dormant bool) {
	ros.mu.Lock()
	defer ros.mu.Unlock()
	if r = ros.runs[id]; r != nil {
		r.told = true
	} else {
		ros.missLocked(id)
	}
	return r, ros.eng.dormitory.runs[id] != nil
}

func (ros *roster) isClosing() bool {
	ros.mu.Lock()
	defer ros.mu.Unlock()
	return ros.closing
}

// background runs fn on a goroutine that Close waits for. It returns false, and
// runs nothing, if the engine is closing.
func (ros *roster) background(fn func()) bool {
	ros.mu.Lock()
	defer ros.mu.Unlock()
	if ros.closing {
		return false
	}
	ros.loops.Go(fn)
	return true
}

// countRunner counts a goroutine that Close waits for; false if the engine is
// closing.
func (ros *roster) countRunner() bool {
	ros.mu.Lock()
	defer ros.mu.Unlock()
	if ros.closing {
		return false
	}
	ros.runners.Add(1)
	return true
}

// succeed puts the next generation's execution in the place of r's and begins
// it.
func (ros *roster) succeed(r, next *run) {
	next.claimed.counts = r.claimed.counts
	ros.mu.Lock()
	ros.runs[r.id] = next
	ros.runners.Add(1) // r is still counted, so Close is still waiting
	if ros.closing {
		// It was not there when Close stopped the others.
		_ = next.die(&death{kind: deathShutdown, err: ErrShutdown})
	}
	ros.mu.Unlock()
	next.launch()
}

// executes reports whether a run that this engine owns is executed or kept
// unloaded here, under the epoch that it has. An execution of an earlier epoch has
// lost the run, and is ended.
func (ros *roster) executes(row *store.Run) bool {
	ros.mu.Lock()
	defer ros.mu.Unlock()
	if r := ros.runs[row.ID]; r != nil {
		if r.row.Epoch < row.Epoch {
			_ = r.die(&death{kind: deathLost, err: ErrLost})
		}
		return true // or about to make way
	}
	d := ros.eng.dormitory.runs[row.ID]
	return d != nil && d.epoch >= row.Epoch
}

// idle returns a channel that is closed when the engine's own work has ended.
func (ros *roster) idle() <-chan struct{} {
	done := make(chan struct{})
	go func() {
		ros.eng.committer.Wait()
		ros.loops.Wait()
		close(done)
	}()
	return done
}

// loseTaken stops the executions of runs that another executor has taken: their
// bodies learn of it at once and not at their next write, and none begins. When it
// returns nil, this executor owned all the remaining runs at the time of the look.
func (ros *roster) loseTaken(ctx context.Context) error {
	e := ros.eng
	ids, stored := ros.present() // before the store is asked: what is created meanwhile is in no answer
	for len(ids) > 0 {
		n := min(len(ids), 200)
		page, err := e.store.List(ctx, store.Filter{IDs: ids[:n], Limit: n})
		if err != nil {
			e.log.Warn("durable: after a gap between two beats the runs of this executor could not be looked at; no step body begins until they are", "executor", e.id, "error", err)
			return err
		}
		ours := make(map[string]*store.Run, len(page.Runs))
		for i := range page.Runs {
			ours[page.Runs[i].ID] = &page.Runs[i]
		}
		for _, id := range ids[:n] {
			switch row := ours[id]; {
			case row == nil:
				ros.lose(id, stored[id])
			case row.Owner != e.id:
				ros.lose(id, row.Epoch)
			}
		}
		ids = ids[n:]
	}
	return nil
}

// lose ends the execution of a run that another executor has taken, or that was deleted, if
// it is of an epoch before this one: it may have been created, or claimed again here, since.
func (ros *roster) lose(id string, before int64) {
	ros.eng.dormitory.drop(id, before) // first: a run that is being loaded at this moment is found by what comes next
	switch r := ros.active(id); {
	case r == nil:
		ros.eng.watchers.notify([]string{id})
	case r.row.Epoch < before:
		_ = r.die(&death{kind: deathLost, err: ErrLost})
	}
}
