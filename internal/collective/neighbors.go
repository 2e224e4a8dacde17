package collective

// Neighbors exchanges parts with neighbours: Send[k] goes to rank To[k], and Recv[k] comes from
// rank From[k]. A negative rank stands for no neighbour; the part is left unchanged. Several
// messages from one rank to another are received in the order in which they are sent.
type Neighbors struct {
	To, From []int
	// Order lists places in From, in the order in which the messages of one rank are received;
	// nil: the order of From.
	Order      []int
	Send, Recv [][]byte
}

func (a *Neighbors) Step(_ int, x *Exchange) bool {
	for k := range a.From {
		if a.Order != nil {
			k = a.Order[k]
		}
		if a.From[k] >= 0 {
			x.Recv(a.From[k], a.Recv[k])
		}
	}
	for k, r := range a.To {
		if r >= 0 {
			x.Send(r, a.Send[k])
		}
	}
	return false
}
