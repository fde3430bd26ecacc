//go:build cgo

package sqlite

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/store/internal/notice"
)

// How processes notify each other: a process that committed something others may wait for
// appends a line to a file (see package notice), and a process that waits reads what was
// appended, which takes no statement. Each line begins with the handle that has written it,
// so that the handle knows its own, and with a number, so that no two lines are the same.
//
// A version before this one appended a byte without meaning, and compared the growth of the
// file with the bytes of its own: it takes each line for news of anything, and its bytes are
// that here.
//
// Why not the WAL itself: it changes with every checkpoint of every step,
// including those of the handle's own writer. Once the WAL is recycled, its
// size says nothing and its modification time is only as fine as the kernel's
// tick, so a change right after a look is missed.

const (
	// noticesMost is the size at which the file of notices is truncated and starts again:
	// its readers then look at everything once.
	noticesMost = 4 << 20
	// noticeLine is the most of a line, but for a single long id. A line is written at once,
	// and not mixed with others.
	noticeLine = 3000
	// noticeHead is how much of the beginning of the file is remembered: if that has changed,
	// the file was truncated.
	noticeHead = 24
	// noticeFile is how often the file that was opened is compared with the one of its name.
	noticeFile = time.Second
)

// noticer appends to the file of notices.
type noticer struct {
	path   string // empty: no notices to or from other processes
	handle string

	mu      sync.Mutex
	file    *os.File // nil until a process listens
	info    fs.FileInfo
	checked time.Time
	lines   int64
}

// sideDir is the directory beside a database file.
func sideDir(file string) string { return file + ".executors" }

func (n *noticer) init(file string, alone bool) {
	n.handle = rand.Text()[:8]
	if !alone {
		n.path = filepath.Join(sideDir(file), "notices")
	}
}

// append writes news for other processes. A failure only delays them until their next beat.
func (n *noticer) append(news notice.News) {
	if n.path == "" {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.file == nil || time.Since(n.checked) > noticeFile {
		if !n.open() {
			return
		}
	}
	if n.lines++; n.lines%256 == 0 {
		if info, err := n.file.Stat(); err == nil && info.Size() > noticesMost {
			_ = n.file.Truncate(0)
		}
	}
	from := n.handle + "." + strconv.FormatInt(n.lines, 36)
	_, _ = n.file.WriteString(strings.Join(news.Messages(from, noticeLine), "\n") + "\n")
}

// open opens the file if it has not, or if it was replaced since. A listener creates the
// file: as long as it does not exist, no process listens.
func (n *noticer) open() bool {
	n.checked = time.Now()
	info, err := os.Stat(n.path)
	if n.file != nil && (err != nil || !os.SameFile(info, n.info)) {
		_ = n.close() // nobody reads it any more
	}
	if n.file != nil || err != nil {
		return err == nil
	}
	f, err := os.OpenFile(n.path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return false
	}
	if n.info, err = f.Stat(); err != nil {
		_ = f.Close()
		return false
	}
	n.file = f
	return true
}

func (n *noticer) close() error {
	if n.file == nil {
		return nil
	}
	err := n.file.Close()
	n.file = nil
	return err
}

// reader reads what others append to the file of notices.
type reader struct {
	n    *noticer
	file *os.File // nil: it could not be opened
	info fs.FileInfo
	at   int64 // up to where it has read
	head []byte
}

// open opens the file, creates it if need be, and goes to its end.
func (r *reader) open() error {
	if err := os.Mkdir(filepath.Dir(r.n.path), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	f, err := os.OpenFile(r.n.path, os.O_CREATE|os.O_RDONLY, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return err
	}
	r.close()
	r.file, r.info = f, info
	r.skip(info.Size())
	return nil
}

// same reports whether the file that is open is still the one of its name.
func (r *reader) same() bool {
	info, err := os.Stat(r.n.path)
	return err == nil && r.file != nil && os.SameFile(info, r.info)
}

func (r *reader) close() {
	if r.file != nil {
		_ = r.file.Close() // only read
		r.file = nil
	}
}

// skip goes to the end of the last whole line.
func (r *reader) skip(size int64) {
	r.head = r.begin(noticeHead)
	r.at = max(0, size-noticeLine*4)
	tail := make([]byte, size-r.at)
	k, _ := r.file.ReadAt(tail, r.at)
	r.at += int64(bytes.LastIndexByte(tail[:k], '\n') + 1)
}

// begin returns the first bytes of the file.
func (r *reader) begin(most int) []byte {
	head := make([]byte, most)
	k, _ := r.file.ReadAt(head, 0)
	return head[:k]
}

// read returns the news since the last call. After a truncation it is to look at everything.
func (r *reader) read() (news notice.News) {
	info, err := r.file.Stat()
	if err != nil {
		return notice.Everything()
	}
	size := info.Size()
	head := r.begin(noticeHead)
	if size < r.at || !bytes.HasPrefix(head, r.head) {
		r.skip(size)
		return notice.Everything()
	}
	r.head = head
	if size == r.at {
		return news
	}
	fresh := make([]byte, size-r.at)
	k, _ := r.file.ReadAt(fresh, r.at)
	fresh = fresh[:k]
	for {
		dots := len(fresh) - len(bytes.TrimLeft(fresh, "."))
		if dots > 0 { // of an earlier version
			news.Merge(notice.Everything())
			fresh, r.at = fresh[dots:], r.at+int64(dots)
		}
		line, rest, whole := bytes.Cut(fresh, []byte("\n"))
		if !whole {
			return news // the rest is being written
		}
		fresh, r.at = rest, r.at+int64(len(line)+1)
		if from, n := notice.Parse(string(line)); !r.n.wrote(from) || bytes.Count(line, []byte(" ")) != 1 {
			news.Merge(n)
		}
	}
}

// wrote reports whether a whole line that begins with from is of this handle. Half a line, which is what
// a full disk leaves, has the next line of anybody behind it.
func (n *noticer) wrote(from string) bool {
	number, own := strings.CutPrefix(from, n.handle+".")
	return own && !strings.Contains(number, ".")
}
