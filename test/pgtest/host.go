package pgtest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Host is a directory for programs that a test runs beside the server, or that run one
// themselves, as the user that may run one. Neither outlives the process that made it.
type Host struct {
	as   *account
	dir  string
	pipe io.Closer // the watchdog ends the programs when this closes
	done chan struct{}
}

// watch waits for the end of standard input, ends the programs that have left their ids in the
// directory, and the servers that these have started, and removes it.
const watch = `
dir=$1
while read -r line; do :; done
for file in "$dir"/*.pid "$dir"/*/postmaster.pid; do
	[ -e "$file" ] && kill -KILL "$(head -n 1 "$file")"
done
rm -rf "$dir"
`

// NewHost makes a host for t, which ends with it. Its files are in memory where there is room.
func NewHost(t testing.TB) *Host {
	t.Helper()
	skip(t)
	h, err := newHost()
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() {
		_ = h.pipe.Close()
		<-h.done
		if err := os.RemoveAll(h.dir); err != nil {
			t.Errorf("pgtest: %v", err)
		}
	})
	return h
}

func newHost() (*Host, error) {
	as, err := unprivileged()
	if err != nil {
		return nil, err
	}
	h := &Host{as: as, done: make(chan struct{})}
	if h.dir, err = memoryDir(as); err != nil {
		return nil, err
	}
	cmd := exec.Command("/bin/sh", "-c", watch, "sh", h.dir)
	as.run(cmd)
	ownGroup(cmd)
	h.pipe, err = cmd.StdinPipe()
	if err := errors.Join(err, cmd.Start()); err != nil {
		return nil, errors.Join(err, os.RemoveAll(h.dir))
	}
	go func() { defer close(h.done); _ = cmd.Wait() }()
	return h, nil
}

// Path returns the path of a file or a directory of the host.
func (h *Host) Path(name string) string { return filepath.Join(h.dir, name) }

// Write writes a file that only the programs of the host can read.
func (h *Host) Write(name, text string) error {
	return errors.Join(os.WriteFile(h.Path(name), []byte(text), 0o600), h.as.own(h.Path(name)))
}

// Run starts a program under a name that no other program of the host has; what it says is
// appended to the file name.log.
func (h *Host) Run(name, program string, args ...string) (*Program, error) {
	log, err := os.OpenFile(h.Path(name+".log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = h.dir, log, log
	cmd.Env = append(os.Environ(), "HOME="+h.dir)
	h.as.run(cmd)
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	p := &Program{file: h.Path(name + ".pid"), cmd: cmd, done: make(chan struct{})}
	go func() { defer close(p.done); _ = cmd.Wait() }()
	return p, h.Write(name+".pid", fmt.Sprintln(cmd.Process.Pid))
}

// LogTail returns the last n lines of what the program of that name has said.
func (h *Host) LogTail(name string, n int) string {
	return tailOf(h.Path(name+".log"), n)
}

// Program is one life of a program of a host.
type Program struct {
	file string
	cmd  *exec.Cmd
	done chan struct{}
}

// Signal sends the program a signal.
func (p *Program) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// Ended reports whether the program has ended.
func (p *Program) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Kill ends the program with SIGKILL, and returns when it has ended.
func (p *Program) Kill() error {
	if err := p.Signal(killed); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.done:
		return os.Remove(p.file)
	case <-time.After(startTimeout):
		return fmt.Errorf("the program of %s does not end", p.file)
	}
}
