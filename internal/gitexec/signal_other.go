//go:build !unix

package gitexec

import "os"

// interrupt ends git: there is no way to ask it.
var interrupt = os.Kill
