package main

import (
	"errors"
	"io/fs"
	"log"
	"os"
	"path/filepath"

	"github.com/holdfast-dev/holdfast/examples/internal/demo"
)

// Site is where services run: a directory for each environment, with a file for each
// service that holds the image it runs. Next to them is a log of every act, with which
// the demonstration checks that nothing was done twice.
type Site struct{ Dir string }

// actsName is the name of the book in the site's directory.
const actsName = "acts.txt"

// Build makes an image of a release.
func (s *Site) Build(r Release) (string, error) {
	image := r.Service + ":" + r.Version
	log.Printf("build %s", image)
	return image, s.note("build", image)
}

// Install makes a service run an image.
func (s *Site) Install(environment, service, image string) error {
	log.Printf("install %s on %s", image, environment)
	if err := os.MkdirAll(filepath.Join(s.Dir, environment), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.Dir, environment, service), []byte(image), 0o600); err != nil {
		return err
	}
	return s.note("install", image, environment)
}

// Remove stops a service. It is not an error if it runs nothing: the step runs again if
// a crash kept its outcome from being recorded.
func (s *Site) Remove(environment, service string) error {
	log.Printf("remove %s from %s", service, environment)
	if err := os.Remove(filepath.Join(s.Dir, environment, service)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return s.note("remove", service, environment)
}

func (s *Site) note(words ...string) error {
	book, err := demo.OpenBook(filepath.Join(s.Dir, actsName))
	if err != nil {
		return err
	}
	if err := book.Write(words...); err != nil {
		book.Close()
		return err
	}
	return book.Close()
}
