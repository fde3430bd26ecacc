package archive

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"strconv"
	"strings"
)

// blob is the git object with a name such as "refs/durable/runs/r:run.json".
type blob struct {
	id   string // empty: there is none
	kind string
	data []byte
}

// is reports whether an id is the hash of b.
func (b *blob) is(id string) bool {
	var h hash.Hash
	switch len(id) {
	case 2 * sha1.Size:
		h = sha1.New()
	default:
		h = sha256.New()
	}
	fmt.Fprintf(h, "%s %d\x00", b.kind, len(b.data))
	_, _ = h.Write(b.data) // never fails, says its documentation
	return hex.EncodeToString(h.Sum(nil)) == id
}

// A catFile is a git process that returns objects by name, one after the other.
type catFile struct {
	git  *gitCommand
	ctx  context.Context
	in   io.WriteCloser
	out  *bufio.Reader
	errs bytes.Buffer
	wait func() error
}

// cat starts one. It must be closed.
func (g *gitCommand) cat(ctx context.Context) (*catFile, error) {
	cmd := g.Command(ctx, nil, "cat-file", "--batch")
	c := &catFile{git: g, ctx: ctx, wait: cmd.Wait}
	cmd.Stderr = &c.errs
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	c.in, c.out = in, bufio.NewReaderSize(out, 64<<10)
	if err := cmd.Start(); err != nil {
		return nil, g.failed(ctx, "cat-file", "", err)
	}
	return c, nil
}

// close ends the process and ignores what it says, because every wanted answer
// has been read.
func (c *catFile) close() {
	_ = c.in.Close()
	_, _ = io.Copy(io.Discard, c.out)
	_ = c.wait()
}

// get asks for one object.
func (c *catFile) get(name string) (blob, error) {
	if _, err := io.WriteString(c.in, name+"\n"); err != nil {
		return blob{}, c.broken(err)
	}
	line, err := c.out.ReadString('\n')
	if err != nil {
		return blob{}, c.broken(err)
	}
	line = strings.TrimSuffix(line, "\n")
	if strings.HasSuffix(line, " missing") {
		return blob{}, nil
	}
	fields := strings.Fields(line)
	if len(fields) != 3 || !objectID.MatchString(fields[0]) {
		return blob{}, c.broken(fmt.Errorf("it answered %.80q", line))
	}
	size, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil || size < 0 || size > maxFile {
		return blob{}, c.broken(fmt.Errorf("an object of %s bytes", fields[2]))
	}
	// The size comes from git and may be wrong in a damaged repository, so
	// allocate only for the data that arrives.
	var data bytes.Buffer
	if n, err := io.CopyN(&data, c.out, size+1); err != nil || n != size+1 {
		return blob{}, c.broken(err)
	}
	return blob{id: fields[0], kind: fields[1], data: data.Bytes()[:size]}, nil
}

func (c *catFile) broken(err error) error {
	_ = c.in.Close()
	waited := c.wait()
	c.wait = func() error { return nil }
	if waited != nil {
		err = waited
	}
	return c.git.failed(c.ctx, "cat-file", c.errs.String(), err)
}
