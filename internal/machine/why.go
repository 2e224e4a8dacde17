//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package machine

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// why says how a process has ended, and why, as far as the launcher can know. It is called once for
// each process.
func (r *run) why(state *os.ProcessState) string {
	if state == nil {
		return "for an unknown reason"
	}
	kills := r.oomKills
	if endedBy(state) == syscall.SIGKILL || state.ExitCode() == 128+int(syscall.SIGKILL) {
		kills = oomKills(oomFiles()...)
	}
	byKernel := kills > r.oomKills
	if byKernel {
		r.oomKills++ // several may die at once
	}
	return explain(state, byKernel)
}

// explain says how a process has ended. byKernel: by the kernel, which needed its memory.
func explain(state *os.ProcessState, byKernel bool) string {
	text := state.String()
	switch usage, ok := state.SysUsage().(*syscall.Rusage); {
	case byKernel && ok:
		text += fmt.Sprintf(", by the kernel for memory: %d MiB resident", usage.Maxrss>>10) // on Linux Maxrss is in KiB
	case state.ExitCode() == 2:
		text += ", as of a panic, a fatal error of Go's runtime or SIGQUIT"
	case state.ExitCode() > 128:
		text += fmt.Sprintf(", as of a shell whose program was ended by a signal: %v", syscall.Signal(state.ExitCode()-128))
	}
	return text
}

// oomFiles returns the files, on Linux, that may have the number of processes that the kernel has
// killed for memory: those of this process's cgroup, version 2 or 1, and that of the machine.
func oomFiles() (files []string) {
	all, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(all)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3) // hierarchy, controllers, path
		switch {
		case len(parts) < 3:
		case parts[0] == "0":
			files = append(files, "/sys/fs/cgroup"+parts[2]+"/memory.events", "/sys/fs/cgroup/memory.events")
		case parts[1] == "memory":
			files = append(files, "/sys/fs/cgroup/memory"+parts[2]+"/memory.oom_control", "/sys/fs/cgroup/memory/memory.oom_control")
		}
	}
	return append(files, "/proc/vmstat")
}

// oomKills returns the number in the first of the files that has it, or 0.
func oomKills(files ...string) int {
	for _, name := range files {
		text, _ := os.ReadFile(name)
		for line := range strings.Lines(string(text)) {
			if number, has := strings.CutPrefix(line, "oom_kill "); has {
				n, _ := strconv.Atoi(strings.TrimSpace(number))
				return n
			}
		}
	}
	return 0
}
