package show

import "os"

// OnKey calls f when a key is pressed on the terminal, until the returned function
// is called, which leaves the terminal as it was. Without a terminal it does
// nothing.
func OnKey(in *os.File, key byte, f func()) (stop func()) {
	restore, err := readKeys(int(in.Fd()))
	if err != nil {
		return func() {}
	}
	// The read cannot be interrupted: the goroutine ends with the process, and may
	// swallow a key that was meant for the shell.
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
