// Package watch has the kernel tell when files change. The files of a process share one
// instance of the kernel's mechanism (Linux allows a user 128 of them); it exists while a
// File does.
package watch

import (
	"errors"
	"io/fs"
	"sync"

	"github.com/fsnotify/fsnotify"

	"github.com/holdfast-dev/holdfast/internal/nudge"
)

// A File is watched while it is armed. Its methods may be called concurrently.
type File struct {
	path string
	wake chan<- struct{}
}

// the is what the files of this process share. It is not part of a Store, because a program
// may open any number of them.
var the = struct {
	sync.Mutex
	kernel *fsnotify.Watcher // nil: there is no File
	ended  chan struct{}     // closed when listen has returned
	files  map[*File]struct{}
	armed  map[string]map[*File]struct{} // by path
}{files: map[*File]struct{}{}, armed: map[string]map[*File]struct{}{}}

// Open begins to watch a file: wake, which needs room for one token, gets one whenever the
// file was written, truncated, renamed or deleted, or its times or rights were changed.
// It fails if the kernel lacks the means, such as a free inotify instance or watch.
func Open(path string, wake chan<- struct{}) (*File, error) {
	f := &File{path: path, wake: wake}
	the.Lock()
	defer the.Unlock()
	if the.kernel == nil {
		w, err := fsnotify.NewWatcher()
		if err != nil {
			return nil, err
		}
		the.kernel, the.ended = w, make(chan struct{})
		go listen(w, the.ended)
	}
	the.files[f] = struct{}{}
	if err := f.arm(); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

// Arm goes on watching after Disarm. After the file was replaced by another of the same name,
// Disarm and Arm watch the new one.
func (f *File) Arm() error {
	the.Lock()
	defer the.Unlock()
	return f.arm()
}

func (f *File) arm() error {
	if _, is := the.files[f]; !is {
		return fs.ErrClosed
	}
	// Also if others watch it already: what they watch may be the file that it has replaced.
	if err := the.kernel.Add(f.path); err != nil {
		return err
	}
	if the.armed[f.path] == nil {
		the.armed[f.path] = map[*File]struct{}{}
	}
	the.armed[f.path][f] = struct{}{}
	return nil
}

// Disarm stops watching, which costs the process nothing then. It must be armed to be told
// again of changes.
func (f *File) Disarm() {
	the.Lock()
	defer the.Unlock()
	f.disarm()
}

func (f *File) disarm() {
	if _, is := the.armed[f.path][f]; !is {
		return
	}
	if delete(the.armed[f.path], f); len(the.armed[f.path]) == 0 {
		delete(the.armed, f.path)
		_ = the.kernel.Remove(f.path) // the kernel forgets a deleted file by itself
	}
}

// Close ends the use of f, and frees what the process needs for files if f was the last.
func (f *File) Close() error {
	the.Lock()
	defer the.Unlock()
	return f.close()
}

func (f *File) close() error {
	if _, is := the.files[f]; !is {
		return nil
	}
	f.disarm()
	delete(the.files, f)
	if len(the.files) > 0 {
		return nil
	}
	w, ended := the.kernel, the.ended
	the.kernel = nil
	err := w.Close()
	// The lock is free meanwhile: listen may need it to end.
	the.Unlock()
	<-ended
	the.Lock()
	return err
}

// listen passes on what the kernel says until w is closed.
func listen(w *fsnotify.Watcher, ended chan<- struct{}) {
	defer close(ended)
	for {
		select {
		case e, ok := <-w.Events:
			if !ok {
				return
			}
			the.Lock()
			for f := range the.armed[e.Name] {
				nudge.Send(f.wake)
			}
			the.Unlock()
		case _, ok := <-w.Errors:
			if !ok {
				return
			}
			// Events were lost, for example because there were too many.
			the.Lock()
			for f := range the.files {
				nudge.Send(f.wake)
			}
			the.Unlock()
		}
	}
}
