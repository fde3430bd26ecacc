// Command order prints what `make test` tells go test before all packages: how many to run at a
// time, and which first.
package main

import (
	"fmt"
	"runtime"
	"strings"
)

// longest are the packages that take longest, so that none of them is left to run alone at the
// end. One that mostly waits stands beside one that computes.
var longest = []string{
	"./test/everystore", "./dashboard", "./store/postgres", "./durable", "./dashboard/internal/browser",
	"./test/proof", "./cli", "./test/transactions", "./bench",
}

func main() {
	// The tests wait for a fifth of their time, so one package more than there are processors
	// (as many as go test takes) keeps them busy.
	fmt.Println("-p", runtime.GOMAXPROCS(0)+1, strings.Join(longest, " "))
}
