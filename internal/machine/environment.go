package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/mpicx/go-mpicx/internal/launcher"
)

// Environment variables that describe a process's job: its directory, the process's rank, and the number of
// processes.
const (
	envJob  = "MPICXRUN_JOB"
	envRank = "MPICXRUN_RANK"
	envSize = "MPICXRUN_SIZE"
)

// A Place is a process's place in a job.
type Place struct {
	dir        string
	Rank, Size int
}

// Started returns the place that the environment gives this process, nil if it gives none.
func Started() (*Place, error) {
	dir := os.Getenv(envJob)
	if dir == "" {
		return nil, nil
	}
	if launcher.Nested() {
		return nil, fmt.Errorf("mpicxrun has started this process (%s), and so has a launcher of MPI jobs, one inside of the other: use one of them", envJob)
	}
	rank, err := strconv.Atoi(os.Getenv(envRank))
	size, sizeErr := strconv.Atoi(os.Getenv(envSize))
	if err != nil || sizeErr != nil || rank < 0 || rank >= size || !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("%s=%q %s=%q %s=%q, expected the values that mpicxrun sets", envJob, dir, envRank, os.Getenv(envRank), envSize, os.Getenv(envSize))
	}
	return &Place{dir, rank, size}, nil
}

// Job names the job.
func (p Place) Job() string { return filepath.Base(p.dir) }

// Processes returns the number of processes of the job, or 0 if this process is in none.
func Processes() int {
	if p, err := Started(); err == nil && p != nil {
		return p.Size
	}
	return 0
}

// Names returns the names of the variables that describe a process's place.
func Names() []string { return []string{envJob, envRank, envSize} }

// Variables returns the variables that give a process this place.
func (p Place) Variables() map[string]string {
	return map[string]string{envJob: p.dir, envRank: strconv.Itoa(p.Rank), envSize: strconv.Itoa(p.Size)}
}

func (p Place) memory() string { return filepath.Join(p.dir, "memory") }
func (p Place) peers() string  { return filepath.Join(p.dir, "peers") }
