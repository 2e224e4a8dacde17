package ulfmbackend

import "strings"

// Purpose says what a message is for: to tell of an error or a revoke ("revoke"), to agree
// on what errors mean ("resolve"), or in the operations that agree, by their names in small
// letters, or to tell that programs have ended ("end").
func (ch *Channel) Purpose(payload []byte) string {
	msg, err := Decode(payload, ch.comm.Size())
	switch {
	case err != nil:
		return ""
	case msg.Kind == Ended:
		return "end"
	case msg.Value == nil:
		return "revoke"
	case msg.Stream == Errors:
		return "resolve"
	}
	return strings.ToLower(msg.Value.Calls.String())
}
