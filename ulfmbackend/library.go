package ulfmbackend

import "github.com/mpicx/go-mpicx/internal/transport"

// A Call is something that a Machine has its Library do.
type Call struct {
	Revoke transport.Topic // with none of the following
	Agree  []uint32        // not nil
	Renew  bool
	Forgo  bool
}

// do carries c out.
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
