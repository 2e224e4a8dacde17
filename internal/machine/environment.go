package machine

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/mpicx/go-mpicx/internal/launcher"
)

// Environment variables that describe a process's job: the directory of the job, the rank of the
// process, the number of processes that the job begins with, and the number of processes that may
// be started later.
const (
	envJob   = "MPICXRUN_JOB"
	envRank  = "MPICXRUN_RANK"
	envSize  = "MPICXRUN_SIZE"
	envLater = "MPICXRUN_LATER"
)

// A Place is a process's place in a job. The ranks of the processes that are started later follow
// those of the size processes with which the job begins.
type Place struct {
	dir         string
	Rank        int
	size, later int
}

// all returns the number of processes that the job can have.
func (p Place) all() int { return p.size + p.later }

// isLater says whether the process was started later.
func (p Place) isLater() bool { return p.Rank >= p.size }

// Started returns the place that the environment gives this process, or nil if it gives none.
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
	later, laterErr := strconv.Atoi(cmp.Or(os.Getenv(envLater), "0"))
	if errors.Join(err, sizeErr, laterErr) != nil || rank < 0 || size < 1 || later < 0 || rank >= size+later || !filepath.IsAbs(dir) {
		var text []string
		for _, name := range Names() {
			text = append(text, fmt.Sprintf("%s=%q", name, os.Getenv(name)))
		}
		return nil, fmt.Errorf("%s, expected the values that mpicxrun sets", strings.Join(text, " "))
	}
	return &Place{dir, rank, size, later}, nil
}

// Job names the job.
func (p Place) Job() string { return filepath.Base(p.dir) }

// Processes returns the number of processes with which the job begins, or 0 if this process is in
// none.
func Processes() int {
	if p, err := Started(); err == nil && p != nil {
		return p.size
	}
	return launcher.Processes()
}

// Names returns the names of the variables that describe a process's place.
func Names() []string { return []string{envJob, envRank, envSize, envLater} }

// Variables returns the variables that give a process this place.
func (p Place) Variables() map[string]string {
	return map[string]string{envJob: p.dir, envRank: strconv.Itoa(p.Rank), envSize: strconv.Itoa(p.size), envLater: strconv.Itoa(p.later)}
}

func (p Place) memory() string  { return filepath.Join(p.dir, "memory") }
func (p Place) sockets() string { return filepath.Join(p.dir, "peers") }
