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

// openChannel makes the error channel of c, over a duplicate of it. Of what Dup
// makes, a rank has its side before all others need to have theirs; what Split
// makes takes no program once a rank has it, because that rank has heard of all.
func (c *Comm) openChannel(dup transport.Comm, byDup bool) {
	if c.proc.backend == backendULFM {
		ch := ulfmbackend.New(dup, c.id, c.t.Epoch(), (*listener)(c))
		c.channel, c.mitigator, c.startListening = ch, ch, ch.Listen
	} else {
		var parent *blackchannel.Channel
		if byDup {
			parent = c.parent.channel.(*blackchannel.Channel)
		}
		ch := blackchannel.New(dup, c.id, parent, (*listener)(c))
		c.channel, c.startListening = ch, ch.Listen
	}
}
