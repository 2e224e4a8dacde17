package node

import (
	"math"
	"sync"
	"syscall"
)

// installed returns the size of this machine's memory and swap space. Go ends a program that
// allocates more.
var installed = sync.OnceValue(func() int {
	var s syscall.Sysinfo_t
	if syscall.Sysinfo(&s) != nil {
		return longestMessage
	}
	//nolint:unconvert // they are 32 bits long elsewhere
	return int(min((uint64(s.Totalram)+uint64(s.Totalswap))*uint64(s.Unit), math.MaxInt))
})
