package pgtest

import (
	"flag"
	"strconv"
)

// Parallel lets n tests run at once, or as many as -parallel says, where go test lets as many
// run as there are processors: tests of a package that mostly wait, for the server, a lock or a
// lease, leave those idle. It is called in TestMain.
func Parallel(n int) {
	flag.Parse()
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "test.parallel" })
	if !said {
		_ = flag.Set("test.parallel", strconv.Itoa(n)) // the flag is there, and n is a number
	}
}
