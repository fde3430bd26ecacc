// Package other is one whose functions workflow code of another package calls.
package other

import (
	"context"
	"math/rand/v2"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
)

var count int

func Stamp() string { return time.Now().String() } // want Stamp:"clock"

func Indirect() string { return Stamp() } // want Indirect:"clock"

func Draw() int { return rand.IntN(6) } // want Draw:"random"

func Home() string { return os.Getenv("HOME") } // want Home:"io"

func Count() int { count++; return count } // want Count:"global"

func Pure(n int) int { return n + 1 }

//durablevet:ignore clock the callers only log it
func Allowed() time.Time { return time.Now() }

// Do runs body in a step.
func Do(ctx context.Context, name string, body func()) error { // want Do:"durable body\\(2\\)"
	return durable.Do(ctx, name, func(context.Context) error { body(); return nil })
}
