package node

import (
	"math"
	"sync"
	"syscall"
)

// installed is how many bytes of memory and swap space this machine has. Go ends a program
// that asks for more.
var installed = sync.OnceValue(func() int {
	var s syscall.Sysinfo_t
	if syscall.Sysinfo(&s) != nil {
		return longestMessage
	}
	//nolint:unconvert // they are 32 bits long elsewhere
	return int(min((uint64(s.Totalram)+uint64(s.Totalswap))*uint64(s.Unit), math.MaxInt))
})
