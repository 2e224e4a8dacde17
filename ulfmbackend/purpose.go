package ulfmbackend

import "strings"

// Purpose names the purpose of a message: "revoke" announces an error or a revoke, "resolve" finds
// the verdict, "stop" asks for a stop, "end" says that programs have ended, "close" that they have
// closed the communicator. The purpose of an agreement's message is its operation's name in lower
// case.
func (ch *Channel) Purpose(payload []byte) string {
	msg, err := Decode(payload, ch.comm.Size())
	switch {
	case err != nil:
		return ""
	case msg.Kind == Stop:
		return "stop"
	case msg.Stream == Closings:
		return "close"
	case msg.Value == nil:
		return "revoke"
	case msg.Stream == Errors:
		return "resolve"
	case msg.Value.Calls != 0:
		return strings.ToLower(msg.Value.Calls.String())
	}
	return "end"
}
