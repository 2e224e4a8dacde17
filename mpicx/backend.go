package mpicx

import (
	"github.com/mpicx/go-mpicx/blackchannel"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/ulfmbackend"
)

// Both error backends are always there, so that tests hold them against each
// other; a job uses one.
const (
	backendBlackChannel = "blackchannel"
	backendULFM         = "ulfm"
)

// openChannel opens the error channel of c over a duplicate of it.
func (c *Comm) openChannel(dup transport.Comm) {
	if c.proc.backend == backendULFM {
		ch := ulfmbackend.New(dup, c.id, c.t.Epoch(), (*listener)(c))
		c.channel, c.mitigator = ch, ch
		ch.Listen()
	} else {
		ch := blackchannel.New(dup, (*listener)(c))
		c.channel = ch
		ch.Listen()
	}
}
