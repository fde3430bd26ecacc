//go:build !unix

package pgtest

import (
	"errors"
	"os"
	"os/exec"
)

var killed, reload = os.Kill, os.Kill

func (m Mode) signal() os.Signal { return os.Kill }

// account is the user that the server runs as.
type account struct{}

// unprivileged refuses: the watchdog needs a shell.
func unprivileged() (*account, error) {
	return nil, errors.New("a throw-away cluster needs a Unix system; set " + EnvDSN + " to a server the tests may create databases on")
}

func (*account) run(*exec.Cmd)           {}
func (*account) own(string) error        { return nil }
func ownGroup(*exec.Cmd)                 {}
func tempDir(*account) (string, error)   { return os.MkdirTemp("", "durable-pg-") }
func memoryDir(*account) (string, error) { return tempDir(nil) }

// MemoryTemp makes no directory: other systems have none in memory.
func MemoryTemp() (dir string, remove func() error) { return "", nil }

// MemoryLeftOut says that the test of MemoryTemp is left out.
func MemoryLeftOut() (line string, err error) {
	return "the test of temporary files in memory was left out: only Linux has them", nil
}
