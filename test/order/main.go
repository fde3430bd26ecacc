// Command order prints which packages `make test` names before all others.
package main

import (
	"fmt"
	"strings"
)

// longest are the packages that take longest, so that none of them is left to run alone at the
// end. One that mostly waits stands beside one that computes.
var longest = []string{
	"./test/everystore", "./test/proof", "./test/transactions", "./test/failover", "./shell", "./bench",
	"./store/postgres", "./cli", "./dashboard", "./durable", "./dashboard/internal/browser", "./test/statements",
}

func main() { fmt.Println(strings.Join(longest, " ")) }
