package mpicx

import "github.com/mpicx/go-mpicx/internal/hook"

func init() {
	hook.Die = func(comm any) { comm.(*Comm).proc.dead.Store(true) }
	hook.Abort = func(comm any, err error) {
		c := comm.(*Comm)
		c.proc.dead.Store(false)
		c.raise(newFailure(err, 0), true, err)
		c.proc.attend()
	}
}
