package collective

// Parts say how a buffer is divided among ranks: rank r's part is [Parts[r], Parts[r+1]).
type Parts []int

// even divides length bytes into n parts of whole elements, of element bytes each.
func even(length, element, n int) Parts {
	p := make(Parts, n+1)
	for i := range p {
		p[i] = length / element * i / n * element
	}
	return p
}

// Digest returns a number of 20 bits that other parts are unlikely to have.
func (p Parts) Digest() (d int) {
	var h uint64
	for _, at := range p {
		h = (h ^ h>>32 ^ uint64(at)) * 0x9e3779b97f4a7c15 // 2⁶⁴ divided by the golden ratio
	}
	return int(h >> 44)
}

// of returns the part of rank r.
func (p Parts) of(b []byte, r int) []byte { return p.span(b, r, r+1) }

// span returns the parts of ranks first to last-1.
func (p Parts) span(b []byte, first, last int) []byte { return b[p[first]:p[last]:p[last]] }

// span returns the parts of ranks first to last-1 in b. All parts have the same length, each,
// unless the call has Parts.
func (a *Call) span(b []byte, each, first, last int) []byte {
	if a.parts == nil {
		return b[first*each : last*each]
	}
	return a.parts.span(b, first, last)
}
