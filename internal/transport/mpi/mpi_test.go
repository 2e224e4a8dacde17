//go:build mpi && cgo

package mpi

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/launcher"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/node"
	"github.com/mpicx/go-mpicx/internal/transport/transporttest"
)

var job *node.Job

func TestMain(m *testing.M) {
	if !launcher.Launched() {
		os.Exit(m.Run())
	}
	var err error
	if job, err = Start(context.Background(), node.Options{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if n, err := strconv.Atoi(os.Getenv("MPICX_TEST_PIECE")); err == nil { // before any transfer
		inPieces(n, true)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() { // progress, as waiting goroutines would make it
		defer close(stopped)
		job.World().(transport.Driver).Await(never{}, stop)
	}()
	code := m.Run()
	close(stop)
	<-stopped
	if err := job.End(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// never is not woken.
type never struct{}

func (never) Woken() bool            { return false }
func (never) Sleep() <-chan struct{} { return nil }
func (never) Rise()                  {}

var made uint64

func needsJob(t *testing.T) {
	if job == nil {
		t.Skip("needs a job: make test-mpi")
	}
}

// Messages longer than MPI can count are sent in parts.
func TestConformanceInParts(t *testing.T) {
	needsJob(t)
	if os.Getenv("MPICX_TEST_PIECE") != "" {
		t.Skip("TestConformance does it")
	}
	defer inPieces(1<<30, false)
	inPieces(1000, false)
	TestConformance(t)
}

// TestConformance runs the suite; every process of the job does.
func TestConformance(t *testing.T) {
	needsJob(t)
	transporttest.Run(t, func(t *testing.T, body func(*testing.T, transport.Comm)) {
		made++
		c, err := job.World().Sub(transport.Name{Seq: made}, nil)
		require.NoError(t, err)
		body(t, c)
	})
}
