package ulfmbackend

import "github.com/mpicx/go-mpicx/internal/transport"

// A Call is a call of a Machine's Library.
type Call struct {
	Revoke transport.Topic // if none of the following is set
	Agree  []uint32        // if not nil
	Renew  bool
	Forgo  bool
}

// do makes the call.
func (c *Call) do(lib transport.Library) {
	switch {
	case c.Agree != nil:
		lib.Agree(c.Agree)
	case c.Renew:
		lib.Renew()
	case c.Forgo:
		lib.Forgo()
	default:
		lib.Revoke(c.Revoke)
	}
}
