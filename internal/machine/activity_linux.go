package machine

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// activity returns the state of a process, as ps shows it, and the time of processors that it has
// used; 0: not known.
func activity(pid int) (state byte, used time.Duration) {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	text := string(stat)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:]) // the state is the first, times are the 12th and 13th
	if len(fields) < 13 {
		return 0, 0
	}
	var user, system int
	_, _ = fmt.Sscan(fields[11]+" "+fields[12], &user, &system)
	return fields[0][0], time.Duration(user+system) * time.Second / 100 // which Linux counts them by
}
