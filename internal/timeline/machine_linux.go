package timeline

import (
	"os"
	"strings"
)

// machine returns a name for the processes that share a clock. Containers with different host
// names share it.
func machine(host string) string {
	if b, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		return strings.TrimSpace(string(b))
	}
	return host
}
