package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/shell"
)

// Release is the input: a Go module whose main package is to be published.
type Release struct {
	Module  string `json:"module"`  // its directory
	Version string `json:"version"` // it is published as
	Publish string `json:"publish"` // directory that is published to
}

// Published is the result.
type Published struct {
	File   string `json:"file"`
	SHA256 string `json:"sha256"`
}

// Decision is what a person answers.
type Decision struct {
	Approved bool   `json:"approved"`
	By       string `json:"by"`
	Reason   string `json:"reason"`
}

// ErrRejected says that a person rejected the release.
var ErrRejected = errors.New("the release was rejected")

// releases is the workflow. The names of its steps are declared, so that the
// terminal knows how many there are.
var releases = durable.Define("release", release, durable.Steps("vet", "test", "build", "checksum", "approve", "publish"))

// release vets, tests, builds and checks a module, asks a person, and publishes.
func release(ctx context.Context, r Release) (Published, error) {
	var none Published
	name := filepath.Base(r.Module)
	built := filepath.Join(r.Module, "dist", name+"-"+r.Version)
	ws := &shell.Workspace{Dir: r.Module, Env: []string{"GOCACHE", "GOFLAGS", "GOMODCACHE", "GOPATH", "FLAKY"}}

	if _, err := ws.Run(ctx, "vet", "go", "vet", "./..."); err != nil {
		return none, err
	}
	upToFive := durable.Policy{MaxAttempts: 5, Initial: time.Second}
	if _, err := ws.Retry(ctx, "test", upToFive, "go", "test", "-count=1", "./..."); err != nil {
		return none, err
	}
	if _, err := ws.Run(ctx, "build", "go", "build", "-o", built, "."); err != nil {
		return none, err
	}
	sum, err := durable.Step(ctx, "checksum", func(context.Context) (string, error) { return checksum(built) })
	if err != nil {
		return none, err
	}

	question := fmt.Sprintf("Publish %s %s (sha256 %.12s) to %s?", name, r.Version, sum, r.Publish)
	answer, err := durable.Await[Decision](ctx, "approve", durable.Prompt(question))
	if err != nil {
		return none, err
	}
	if !answer.Approved {
		return none, durable.Permanent(fmt.Errorf("%w: %s", ErrRejected, answer.Reason))
	}

	return durable.Step(ctx, "publish", func(context.Context) (Published, error) {
		return publish(built, sum, r.Publish)
	})
}

func checksum(file string) (string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), nil
}

// publish puts a file into a directory, all of it or nothing. It is idempotent.
func publish(built, sum, dir string) (Published, error) {
	content, err := os.ReadFile(built)
	if err != nil {
		return Published{}, err
	}
	if now := sha256.Sum256(content); hex.EncodeToString(now[:]) != sum {
		return Published{}, durable.Permanent(fmt.Errorf("%s was changed since it was approved", built))
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return Published{}, err
	}
	file := filepath.Join(dir, filepath.Base(built))
	part := file + ".part"
	if err := os.WriteFile(part, content, 0o700); err != nil {
		return Published{}, err
	}
	return Published{File: file, SHA256: sum}, os.Rename(part, file)
}
