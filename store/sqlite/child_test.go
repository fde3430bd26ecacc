//go:build cgo

package sqlite_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/conformance"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// Other processes in these tests are this test program, told by the environment
// what to be.
const (
	childRole = "HOLDFAST_TEST_ROLE"
	childFile = "HOLDFAST_TEST_FILE"
	childName = "HOLDFAST_TEST_NAME"
)

var roles = map[string]func(st *sqlite.Store, name string) error{
	"write": childWrites,
	"claim": childClaims,
	"hold":  childHolds,
	"open":  func(*sqlite.Store, string) error { return nil },
	"sweep": childSweeps,
	"queue": childQueues,
}

// bare are roles that open the file by themselves.
var bare = map[string]func(path, name string) error{
	"upgrade": childUpgrades,
	"restore": childRestores,
}

func TestMain(m *testing.M) {
	conformance.Main(func(path string) (store.Store, error) {
		return sqlite.OpenOptions(path, sqlite.Options{Synchronous: sqlite.Off}) // a kill is no power failure
	})
	if role, ok := bare[os.Getenv(childRole)]; ok {
		if err := role(os.Getenv(childFile), os.Getenv(childName)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	role, ok := roles[os.Getenv(childRole)]
	if !ok {
		os.Exit(m.Run())
	}
	st, err := sqlite.Open(os.Getenv(childFile))
	if err == nil {
		err = role(st, os.Getenv(childName))
	}
	if err == nil {
		err = st.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// child is another process on the same file.
type child struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner // what it says
}

func spawn(t testing.TB, role, path, name string) *child {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childRole+"="+role, childFile+"="+path, childName+"="+name)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		// An error says that it has ended already.
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return &child{cmd: cmd, in: in, lines: bufio.NewScanner(out)}
}

// rest reads what the child still says, until it ends.
func (c *child) rest() (lines []string) {
	for c.lines.Scan() {
		lines = append(lines, c.lines.Text())
	}
	return lines
}

func (c *child) says(t testing.TB, want string) {
	t.Helper()
	require.True(t, c.lines.Scan())
	require.Equal(t, want, c.lines.Text())
}

func (c *child) kill(t testing.TB) {
	t.Helper()
	require.NoError(t, c.cmd.Process.Kill())
	_ = c.cmd.Wait() // tells of the kill
}

// childWrites creates runs and steps for ever, several in a batch, and says
// what was acknowledged: a run and its number of events.
func childWrites(st *sqlite.Store, name string) error {
	ctx := context.Background()
	out := bufio.NewWriter(os.Stdout)
	var logs []*log
	for i := 0; ; i++ {
		var batch []store.Change
		var of []*log
		if i%7 == 0 {
			l, c := create(fmt.Sprintf("%s-%d", name, i), nil)
			logs, of, batch = append(logs, l), append(of, l), append(batch, c)
		}
		if i%3 == 0 { // several runs in one commit, and several events in a Change
			for _, l := range logs[max(0, len(logs)-4):] {
				if len(of) == 0 || of[0] != l {
					of, batch = append(of, l), append(batch, l.plain(1+i%2))
				}
			}
		}
		if len(batch) == 0 {
			l := logs[i%len(logs)]
			of, batch = append(of, l), append(batch, l.plain(1))
		}
		for k, err := range st.Commit(ctx, batch) {
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "%s %d\n", of[k].run, of[k].last.Seq)
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
}

// childClaims takes runs, one at a time, until there are none, and says which.
func childClaims(st *sqlite.Store, name string) error {
	ctx := context.Background()
	e := executor(name)
	if _, err := st.Beat(ctx, e); err != nil {
		return err
	}
	fmt.Println("ready")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	for n := 1; ; n = n%4 + 1 {
		runs, err := st.Claim(ctx, store.Claim{Executor: name, Serves: e.Serves, Max: n, At: created})
		if err != nil || len(runs) == 0 {
			return err
		}
		for i := range runs {
			fmt.Println(runs[i].ID, runs[i].Epoch)
		}
	}
}

// childHolds takes what there is, with a long lease, and waits to be killed.
func childHolds(st *sqlite.Store, name string) error {
	ctx := context.Background()
	e := executor(name)
	e.Lease = time.Hour
	if _, err := st.Beat(ctx, e); err != nil {
		return err
	}
	runs, err := st.Claim(ctx, store.Claim{Executor: name, Serves: e.Serves, Max: 100, At: created})
	if err != nil {
		return err
	}
	fmt.Println("holds", len(runs))
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func fields(t testing.TB, line string) (id string, n int64) {
	t.Helper()
	i := strings.LastIndexByte(line, ' ')
	require.Positive(t, i, line)
	_, err := fmt.Sscan(line[i+1:], &n)
	require.NoError(t, err, line)
	return line[:i], n
}
