package sim

import (
	"fmt"
	"time"
)

// A Program is what a workflow function, a branch, an item or a child does: its calls,
// one after the other. An error that is not Handled ends it.
type Program []Node

// A Kind is a durable call, or something else that a workflow does.
type Kind string

// What a Node does.
const (
	Step     Kind = "step"     // fails for good if Fails is set
	Relaxed  Kind = "relaxed"  // a step that rides with the next write
	Long     Kind = "long"     // a step whose beginning is recorded
	Retry    Kind = "retry"    // fails Fails times; Max attempts
	Progress Kind = "progress" // a Retry whose body saves progress
	Once     Kind = "once"
	Settled  Kind = "settled"  // a Once whose effect Reconcile asks for
	Seek     Kind = "seek"     // a Retry whose check refuses Fails results
	Transact Kind = "transact" // a Retry that writes an effect in a transaction of the store, and starts a run of its Body there
	Sleep    Kind = "sleep"
	Until    Kind = "until"   // SleepUntil
	Await    Kind = "await"   // a signal of its own name; For is its time-out, 0: none
	Answer   Kind = "answer"  // a request of its own name, which it refuses if Fails is set, and answers again with Max 2; For is its time-out
	Approve  Kind = "approve" // asks a person; For is its time-out
	Drain    Kind = "drain"   // takes Max signals of its own name, which are all there before
	Draw     Kind = "draw"    // Now, NewID and Rand as a step's input
	Nested   Kind = "nested"  // a Retry whose body makes a durable call, which is refused
	Publish  Kind = "publish"
	Tag      Kind = "tag"  // SetAttributes
	Sync     Kind = "sync" // Checkpoint
	Go       Kind = "go"   // a branch for each node of Body, waited for in order after Then
	Group    Kind = "group"
	First    Kind = "first"   // the first of the branches of Body
	Map      Kind = "map"     // Body for each of Max items, two at a time
	MapSeq   Kind = "mapseq"  // the same from a sequence; with Fails 1 the fold, with 2 the sequence fails as How says
	Child    Kind = "child"   // Body in a child run; with Max 2, two goroutines wait for it
	Undo     Kind = "undo"    // registers a compensation, which fails Fails times
	Cleanup  Kind = "cleanup" // Body, and Then if it failed, whatever that comes to
	Block    Kind = "block"   // Body, in the place of one node
	Change   Kind = "change"  // Body by the second build of a world with a Release, Then by the first one
	Look     Kind = "look"    // returns the error of the context if it has ended
	Fail     Kind = "fail"    // an error of the workflow's own
	Panic    Kind = "panic"   // of the workflow's own
	Exit     Kind = "exit"    // runtime.Goexit in the workflow function
	Renew    Kind = "renew"   // Continue, Max times in all
)

// How a body that fails does so.
const (
	ByPanic = "panic"
	ByExit  = "exit"
	ByBlock = "block" // until its context ends; Retry then has a Timeout
	ByDeaf  = "deaf"  // takes For whatever becomes of its context, and does not fail
	ByLeave = "leave" // of a Child: it is abandoned, and nobody waits for it
	ByTell  = "tell"  // of a Transact: it sends its run a signal in the transaction, and fails by an error
	ByType  = "type"  // by an error of a registered type that panics when it is read back
)

// BadID is an id that no run can have, so that the child is refused.
const BadID = "bad\nid"

// AsDerived is the id that the first child of a run would have if the program chose none.
const AsDerived = "*/="

// A Node is one call, with what happens in it.
type Node struct {
	Do      Kind
	Fails   int           // attempts that fail before one succeeds
	How     string        // the failing attempts fail by an error, or as ByPanic says
	Max     int           // attempts, items, waiters, generations
	For     time.Duration // how long the body, the sleep or the time-out takes
	ID      string        // of a child; empty: derived
	Handled bool          // its error is looked at and not returned
	Body    Program
	Then    Program
}

// isBody reports whether a node runs a body of a step.
func (n *Node) isBody() bool {
	switch n.Do {
	case Step, Relaxed, Long, Retry, Progress, Once, Settled, Seek, Draw, Nested, Transact:
		return true
	}
	return false
}

// returnsErrors reports whether the body of a node returns errors that say errOfBody.
func (n *Node) returnsErrors() bool {
	return n.isBody() && (n.How == "" || n.How == ByDeaf || n.How == ByTell) && n.Do != Nested
}

// rides reports whether the outcome of a node's call is recorded with the next write of its
// run, and not before the call returns.
func (n *Node) rides() bool {
	return n.Do == Relaxed || n.Do == Sleep || n.Do == Until || n.Do == Map || n.Do == MapSeq
}

// deaf reports whether a body of p ignores its context.
func (p Program) deaf() (deaf bool) {
	p.walk("", func(_ string, n *Node) { deaf = deaf || n.How == ByDeaf })
	return deaf
}

// attempts returns how many attempts the policy of a node allows.
func (n *Node) attempts() int {
	if n.Do == Retry || n.Do == Progress || n.Do == Seek || n.Do == Transact {
		return max(n.Max, 1)
	}
	return 1
}

// walk calls f for each node of p with its path: "0", "0.2", and "0/1" in a Then.
func (p Program) walk(path string, f func(path string, n *Node)) {
	for i := range p {
		at := fmt.Sprint(path, i)
		f(at, &p[i])
		p[i].Body.walk(at+".", f)
		p[i].Then.walk(at+"/", f)
	}
}

// has reports whether p has a node of one of these kinds.
func (p Program) has(kinds ...Kind) (found bool) {
	p.walk("", func(_ string, n *Node) {
		for _, k := range kinds {
			found = found || n.Do == k
		}
	})
	return found
}

// at returns the body of the node with this path; "": the program itself.
func (p Program) at(path string) Program {
	body := p
	p.walk("", func(at string, n *Node) {
		if at == path {
			body = n.Body
		}
	})
	return body
}

// signals returns the names of all waits for signals that p can come to.
func (p Program) signals() []string { return p.paths(Await) }

// questions returns the names of all waits for requests that p can come to.
func (p Program) questions() []string { return p.paths(Answer) }

// paths returns where p has nodes of a kind.
func (p Program) paths(of Kind) (all []string) {
	p.walk("", func(at string, n *Node) {
		if n.Do == of {
			all = append(all, at)
		}
	})
	return all
}

// node returns the node with this path; nil: there is none.
func (p Program) node(path string) (found *Node) {
	p.walk("", func(at string, n *Node) {
		if at == path {
			found = n
		}
	})
	return found
}

// choosesIDs reports whether p gives ids to its children.
func (p Program) choosesIDs() (chooses bool) {
	p.walk("", func(_ string, n *Node) { chooses = chooses || n.ID != "" })
	return chooses
}

// oneAsDerived takes the id AsDerived away unless the program has a single child and its runs
// have one generation: two children of a run cannot have the same id.
func (p Program) oneAsDerived() {
	children := 0
	p.walk("", func(_ string, n *Node) {
		if n.Do == Child {
			children++
		}
	})
	if children < 2 && !p.has(Renew) {
		return
	}
	p.walk("", func(_ string, n *Node) {
		if n.ID == AsDerived {
			n.ID = ""
		}
	})
}
