//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Processes in PID namespaces of their own, as containers have them, see each other's ends.
func TestDeathAcrossPIDNamespaces(t *testing.T) {
	apart := []string{"unshare", "--pid", "--fork", "--kill-child"}
	if out, err := exec.Command(apart[0], append(apart[1:], "true")...).CombinedOutput(); err != nil {
		t.Skipf("needs root, and unshare: %v %s", err, out)
	}
	t.Setenv("TEST_BACKEND", "ulfm")
	j := start(t, "rounds", append([]string{"-n", "3"}, apart...)...)
	require.Equal(t, []int{1, 1, 1}, j.pids(t, 3))
	victim := children(t, children(t, j.Process.Pid)[0])
	require.Len(t, victim, 1)
	require.NoError(t, syscall.Kill(victim[0], syscall.SIGKILL))
	j.send(t, syscall.SIGTERM)
	j.ends(t, 0)
	require.Equal(t, 2, strings.Count(j.out.String(), ": 2 survivors"), "%s", &j.out)
	require.Equal(t, 1, strings.Count(j.errs.String(), "has died"), "%s", &j.errs)
}

// children are the processes that a process has started.
func children(t *testing.T, parent int) (pids []int) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(t, err)
	for _, name := range stats {
		b, _ := os.ReadFile(name) // it may have ended
		var state string
		var pid, ppid int
		_, _ = fmt.Sscan(string(b), &pid)
		_, rest, _ := strings.Cut(string(b), ") ")
		if _, err := fmt.Sscan(rest, &state, &ppid); err == nil && ppid == parent {
			pids = append(pids, pid)
		}
	}
	return pids
}
