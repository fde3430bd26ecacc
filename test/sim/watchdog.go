package sim

import (
	"fmt"
	"os"
	"time"
)

// Watch ends the process with the world of a seed if that does not end: virtual time then
// goes on for ever, and nothing else would stop it. Call done when the world has ended. A
// world that ends the process with a panic is found by HOLDFAST_SIM_LAST, a file that
// holds the last world begun.
func Watch(seed uint64, w World) (done func()) {
	if file := os.Getenv("HOLDFAST_SIM_LAST"); file != "" {
		_ = os.WriteFile(file, []byte(w.Test(fmt.Sprint("seed ", seed))), 0o644)
	}
	timer := time.AfterFunc(time.Minute, func() {
		fmt.Fprintf(os.Stderr, "sim: the world of seed %d does not end\n%s", seed, w.Test("it does not end"))
		panic("sim: a world does not end")
	})
	return func() { timer.Stop() }
}
