package collective

// BcastChain is Bcast along a chain of ranks that begins at Root: each rank passes on one
// segment while it receives the next.
type BcastChain struct {
	Buf     []byte
	Root    int
	Segment int // bytes
}

func (a *BcastChain) Step(k int, x *Exchange) bool {
	n := x.Size()
	t := tree{a.Root}
	v := t.number(x)
	segments := segments(len(a.Buf), a.Segment)
	if v > 0 && k < segments {
		x.Recv(t.rank(v-1, x), segment(a.Buf, k, a.Segment))
	}
	if sent := k - min(v, 1); v < n-1 && 0 <= sent && sent < segments {
		x.Send(t.rank(v+1, x), segment(a.Buf, sent, a.Segment))
	}
	return k <= segments
}

// segments returns the number of segments in length bytes, each bytes a segment.
func segments(length, each int) int { return (length + each - 1) / each }

func segment(b []byte, k, each int) []byte { return b[k*each : min((k+1)*each, len(b))] }
