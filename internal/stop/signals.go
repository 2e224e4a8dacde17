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

// Watch calls ask when one of the signals comes, until the returned function is called. A signal
// that comes more than a second after the first has its default effect: it ends the process.
func Watch(signals []os.Signal, ask func(os.Signal)) (end func()) {
	came, over := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(came, signals...)
	var watching sync.WaitGroup
	watching.Go(func() {
		var first time.Time
		for {
			select {
			case s := <-came:
				switch {
				case first.IsZero():
					first = time.Now()
					ask(s)
				case time.Since(first) > again:
					signal.Reset(signals...)
					self, err := os.FindProcess(os.Getpid())
					if err != nil || self.Signal(s) != nil {
						os.Exit(1)
					}
				}
			case <-over:
				return
			}
		}
	})
	return func() {
		signal.Stop(came)
		close(over)
		watching.Wait()
	}
}
