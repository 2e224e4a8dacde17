package collective

// Neighbors exchanges parts with neighbours: the k-th of To gets the k-th of Send, and the k-th of
// Recv comes from the k-th of From. A negative rank is nobody, whose part is left alone. Of several
// messages between the same two ranks the first that one sends is the first that the other
// receives.
type Neighbors struct {
	To, From []int
	// Order says in which order messages of one rank are received, by their places in From; nil: in
	// that of From.
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
