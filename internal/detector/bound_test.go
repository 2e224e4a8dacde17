package detector

import (
	"math/bits"
	"time"
)

// bound returns the longest time from a death to when the last of the n ranks
// that lives has been told, if the latency is L < δ - η:
//
//	δ + b·L                                                      for f = 1
//	(f² + f - 1)·δ + b·L + (f - 1)·(1 + b(b-1)/2)·L              in general
//
// where b = ⌈log2 n⌉ and f (deaths) counts this death, the deaths that are not settled when it
// occurs, and the deaths that occur before the last rank has been told. A death is settled when
// every rank has been told and has heard its emitter since, at most 2L after that. At the start no
// rank has heard another, which counts like one more unsettled death.
//
// One death in a settled ring: the last heartbeat is handled L after it, and the observer's timeout
// ends δ later. Consider a rank that has been told of the only death that some ranks do not know,
// and any rank at a distance of 2^k to 2^(k+1)-1 from it, ahead or behind. The first has a living
// neighbour with less than 2^k left to the second, in the same direction. No rank is further than
// n/2 in both directions, so b - 1 successive messages reach each rank.
//
// In general, let the last of j unsettled deaths have occurred, with no other for a while.
//
//   - Within 2jδ every survivor knows the dead between the survivor before it and itself. It needs
//     at most 2δ for each of them: that long it waits for a rank that it has asked. For one that it
//     had heard it waits less, L + δ.
//   - After another L it also knows the dead up to the survivor after it, because that one counts
//     it as a neighbour, and a rank has sent its neighbours all that it knows.
//   - Let every survivor s know all dead up to the first survivor at a distance of at least 2^h,
//     ahead and behind. (This holds now for h = 0.) Then its neighbours for 2^0 to 2^h are correct.
//     Let q be the first survivor at least 2^h behind s; if there is none, s knows all. q knows
//     what s lacks for 2^(h+1). This takes L to reach q's neighbour 2^h ahead, s'. Either s' is s,
//     or it is between q and s, and then less than 2^h behind s, because there is no survivor
//     between q and s-2^h. From s' it takes at most h successive messages along neighbours nearer
//     than 2^h. The same holds in the other direction. So h increases by one within (h+1)·L.
//   - With h = b - 1 every rank knows 2^(b-1) ranks in both directions, which is all.
//
// The sum is W(j) = 2jδ + (1 + b(b-1)/2)·L for j > 1, and W(1) = δ + b·L from above. The (j+1)-th
// death may occur just before W(j) ends and undo the work, f - 1 times. Hence the bound is W(1) + …
// + W(f).
//
// If ranks have doubted themselves, each of their waits may be longer by up to 8 timeouts and the
// time for which they stood still.
func (c Config) bound(n, deaths int, latency time.Duration) time.Duration {
	b, f := time.Duration(bits.Len(uint(n-1))), time.Duration(min(deaths, n))
	return (f*f+f-1)*c.Timeout + (b+(f-1)*(1+b*(b-1)/2))*latency
}
