package cli

import "os"

// onKey calls f when a key is pressed on the terminal, until the returned function
// is called, which leaves the terminal as it was. Without a terminal it does
// nothing.
func (c *call) onKey(key byte, f func()) (stop func()) {
	in, ok := c.cmd.InOrStdin().(*os.File)
	if !ok || !c.out.tty || c.flags.json {
		return func() {}
	}
	restore, err := readKeys(int(in.Fd()))
	if err != nil {
		return func() {}
	}
	// The read cannot be interrupted; the goroutine ends with the process, and
	// what is typed for the shell meanwhile is not much.
	go func() {
		var b [1]byte
		for {
			if n, err := in.Read(b[:]); n == 0 || err != nil {
				return
			}
			if b[0] == key {
				f()
				return
			}
		}
	}()
	return restore
}
