package collective

// BcastScatter is Bcast of a long buffer, after van de Geijn: Root sends each other rank a part
// of it, and then these ranks exchange their parts.
type BcastScatter struct {
	Buf  []byte
	Root int
}

func (a *BcastScatter) Step(k int, x *Exchange) bool {
	t, n := tree{a.Root}, x.Size()
	v := t.number(x)
	parts := even(len(a.Buf), 1, max(1, n-1))
	of := func(v int) []byte { return parts.of(a.Buf, v-1) }
	switch {
	case v == 0:
		for to := 1; to < n; to++ {
			x.Send(t.rank(to, x), of(to))
		}
		return false
	case k == 0:
		x.Recv(a.Root, of(v))
		return true
	}
	for d := 1; d < n-1; d++ {
		from := 1 + around(v-1, -d, n-1)
		x.Recv(t.rank(from, x), of(from))
	}
	for d := 1; d < n-1; d++ {
		x.Send(t.rank(1+around(v-1, d, n-1), x), of(v))
	}
	return false
}
