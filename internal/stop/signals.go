package stop

import (
	"os"
	"os/signal"
	"sync"
	"time"
)

// again is how long after the first signal another one is taken for the same request: a launcher
// passes on what the batch system has sent to all processes.
const again = time.Second

// Watch calls ask when one of the signals comes, until the returned function is called. With
// ends, a signal that comes more than a second after the first has its default effect: it ends the
// process. So has one that comes too late to be asked for.
func Watch(signals []os.Signal, ends bool, ask func(os.Signal)) (end func()) {
	came, over := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(came, signals...)
	var watching sync.WaitGroup
	var first time.Time
	watching.Go(func() {
		for {
			select {
			case s := <-came:
				switch {
				case first.IsZero():
					first = time.Now()
					ask(s)
				case ends && time.Since(first) > again:
					signal.Reset(signals...)
					raise(s)
				}
			case <-over:
				return
			}
		}
	})
	return sync.OnceFunc(func() {
		signal.Stop(came)
		close(over)
		watching.Wait()
		select {
		case s := <-came:
			if first.IsZero() || time.Since(first) > again {
				raise(s)
			}
		default:
		}
	})
}

// raise sends a signal to this process.
func raise(s os.Signal) {
	self, err := os.FindProcess(os.Getpid())
	if err != nil || self.Signal(s) != nil {
		os.Exit(1)
	}
}
