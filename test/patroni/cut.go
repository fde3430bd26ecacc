package patroni

import (
	"fmt"
	"testing"

	"github.com/holdfast-dev/holdfast/test/pgtest/wire"
)

// ways are the ports that lead from a node, and to it.
type ways struct {
	reached int    // to its server, for the other nodes
	asked   int    // to its Patroni, for the other nodes
	etcd    [3]int // from it to each member of etcd
	servers [3]int // from it to each server
	wires   []*wire.Wire
}

// direct leads to the programs themselves.
func (n *Node) direct() {
	n.ways.reached, n.ways.asked = n.port, n.rest
	for i, o := range n.cluster.nodes {
		n.ways.etcd[i], n.ways.servers[i] = o.client, o.port
	}
}

// wire leads through wires, which Isolate cuts. That to the member of etcd on the node itself
// is one of them: alone, the member has no majority, and answers nothing either.
func (n *Node) wire(t testing.TB) {
	through := func(port int, ends ...*Node) int {
		w := wire.New(t, fmt.Sprint("127.0.0.1:", port))
		for _, end := range ends {
			end.ways.wires = append(end.ways.wires, w)
		}
		return w.Port()
	}
	n.ways.reached, n.ways.asked = through(n.port, n), through(n.rest, n)
	for i, o := range n.cluster.nodes {
		n.ways.etcd[i] = through(o.client, n, o)
		if o != n {
			n.ways.servers[i] = through(o.port, n, o)
		}
	}
}

// Isolate cuts the node, and the programs that stand where it does, off from the others.
func (n *Node) Isolate() {
	n.cut = true
	for _, w := range n.ways.wires {
		w.Cut()
	}
}

// Rejoin mends what Isolate has cut.
func (n *Node) Rejoin() {
	n.cut = false
	for _, w := range n.ways.wires {
		w.Mend()
	}
}
