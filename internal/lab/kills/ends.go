//go:build unix

package main

import (
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ways are the ways in which a process ends. In the last one it only stops for a while.
var ways = []string{"exit0", "exit3", "panic", "logfatal", "throw", "SIGKILL", "SIGSEGV", "SIGABRT", "SIGTERM", "stop"}

// places are where a process ends, some time after it has arrived there.
var places = []string{"start", "work", "recover", "agree", "finalize"}

// An end is a planned end of a process.
type end struct {
	rank       int
	place, way string
	round      int // of work
	after      time.Duration
}

func (e end) String() string {
	return fmt.Sprintf("%d:%s:%s:%d:%d", e.rank, e.place, e.way, e.round, e.after.Microseconds())
}

func parseEnd(s string) (e end, err error) {
	f := strings.Split(s, ":")
	if len(f) != 5 {
		return e, fmt.Errorf("%q, expected rank:place:way:round:microseconds", s)
	}
	var us int
	for i, n := range map[int]*int{0: &e.rank, 3: &e.round, 4: &us} {
		if *n, err = strconv.Atoi(f[i]); err != nil {
			return e, err
		}
	}
	e.place, e.way, e.after = f[1], f[2], time.Duration(us)*time.Microsecond
	return e, nil
}

// newEnd draws an end.
func newEnd(rnd *rand.Rand, rank, rounds int) end {
	e := end{rank: rank, place: places[rnd.IntN(len(places))], way: ways[rnd.IntN(len(ways))], round: rnd.IntN(rounds)}
	longest := map[string]time.Duration{"start": 100 * time.Millisecond, "work": 100 * time.Microsecond, "recover": time.Millisecond,
		"agree": 300 * time.Microsecond, "finalize": 60 * time.Millisecond}[e.place]
	if rnd.IntN(4) > 0 {
		e.after = time.Duration(rnd.Int64N(int64(longest)))
	}
	return e
}

// happen ends this process.
func (e end) happen() {
	if e.after > 0 {
		time.AfterFunc(e.after, e.now)
		return
	}
	e.now()
}

func (e end) now() {
	if e.way == "stop" {
		note("stops")
		// Until this process ends, because it may be slow to stop.
		wake := exec.Command("sh", "-c", fmt.Sprintf("sleep 0.2; while kill -CONT %d; do sleep 0.1; done", os.Getpid()))
		if err := wake.Start(); err != nil {
			log.Fatal(err)
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		return
	}
	note("ends " + e.way)
	switch e.way {
	case "exit0":
		os.Exit(0)
	case "exit3":
		os.Exit(3)
	case "panic":
		go func() { panic("planned") }()
	case "logfatal":
		log.Fatal("planned")
	case "throw":
		m := map[int]int{}
		for range 4 {
			go func() {
				for {
					m[0]++
				}
			}()
		}
	default:
		s := map[string]syscall.Signal{"SIGKILL": syscall.SIGKILL, "SIGSEGV": syscall.SIGSEGV, "SIGABRT": syscall.SIGABRT, "SIGTERM": syscall.SIGTERM}[e.way]
		_ = syscall.Kill(os.Getpid(), s)
	}
	select {}
}
