package lesson

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/mpicx/go-mpicx/mpicx"
)

// Lines collects what the ranks say.
type Lines struct {
	mu    sync.Mutex
	lines []line
}

type line struct {
	rank int
	text string
}

// Say adds a line of a rank of the world.
func (l *Lines) Say(world *mpicx.Comm, format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line{world.Rank(), fmt.Sprintf(format, args...)})
}

// String returns the lines in order of rank. Lines of one rank are in the order in which it said
// them.
func (l *Lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.SortStableFunc(l.lines, func(a, b line) int { return cmp.Compare(a.rank, b.rank) })
	var b strings.Builder
	for _, s := range l.lines {
		fmt.Fprintf(&b, "rank %d: %s\n", s.rank, s.text)
	}
	return b.String()
}

// A Program is one rank's part of a lesson.
type Program func(ctx context.Context, world *mpicx.Comm, out *Lines) error

// Main runs a lesson on the given number of ranks, or on MPICX_RANKS of the environment, prints
// what they said, and ends the process. (Under mpirun each process prints its own lines.)
func Main(ranks int, program Program) {
	os.Exit(run(filepath.Base(os.Args[0]), ranks, program, os.Stdout, os.Stderr))
}

func run(name string, ranks int, program Program, stdout, stderr io.Writer) (exit int) {
	if mpicx.Backend != "ulfm" {
		fmt.Fprintf(stderr, "%s: needs -tags ulfm: the error backend %s cannot see a process die\n", name, mpicx.Backend)
		return 1
	}
	var opts []mpicx.Option
	if os.Getenv("MPICX_RANKS") == "" {
		opts = append(opts, mpicx.WithRanks(ranks))
	}
	var out Lines
	err := mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		return program(ctx, world, &out)
	}, opts...)
	fmt.Fprint(stdout, &out)
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", name, err)
		return 1
	}
	return 0
}
