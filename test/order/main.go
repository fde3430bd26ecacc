// Command order prints how many packages `make test` tests at a time, and which it names before
// all others.
package main

import (
	"fmt"
	"runtime"
	"strings"
)

// longest are the packages that take longest, so that none of them is left to run alone at the
// end. One that mostly waits stands beside one that computes.
var longest = []string{
	"./test/everystore", "./test/statements", "./test/proof", "./test/transactions", "./test/failover", "./shell", "./bench",
	"./store/postgres", "./durable", "./cli", "./dashboard", "./dashboard/internal/browser",
}

// One package more than there are processors: some of those under way mostly wait.
func main() { fmt.Printf("-p=%d %s\n", runtime.GOMAXPROCS(0)+1, strings.Join(longest, " ")) }
