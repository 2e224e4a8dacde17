package mpicx

import "github.com/mpicx/go-mpicx/internal/hook"

func init() {
	hook.Die = func(comm any) { comm.(*Comm).proc.dead.Store(true) }
}
