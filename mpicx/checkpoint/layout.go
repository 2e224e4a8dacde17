package checkpoint

import "slices"

// A scheme is a group code. The data of each member are k chunks. From k chunks, of k members, m
// parities are computed, at m other members. With k = 1 the parities are copies.
type scheme struct{ k, m int }

// chunk returns the length of a chunk of data of length n.
func (c scheme) chunk(n uint64) uint64 { return (n + uint64(c.k) - 1) / uint64(c.k) }

// A group is the members that keep each other's data, with the scheme that is possible for their
// number. There are as many stripes as members. Stripe s has its parities at positions s … s+m-1,
// and its data at s+m … s+m+k-1, modulo the size. No position has two shards of a stripe, so all
// data survive the loss of any m members.
type group struct {
	members []int // ranks
	scheme
}

// at returns p modulo the size.
func (g *group) at(p int) int {
	n := len(g.members)
	return ((p % n) + n) % n
}

// stripeOf returns the stripe of chunk c of the member at a position.
func (g *group) stripeOf(position, c int) int { return g.at(position - g.m - c) }

// holder returns the position of shard i of a stripe. The k data come first, then the m parities.
func (g *group) holder(stripe, i int) int {
	if i < g.k {
		return g.at(stripe + g.m + i)
	}
	return g.at(stripe + i - g.k)
}

// groupOf returns the group of a rank, and the rank's position there. machines has the machine of
// each rank. A group has members on as many machines as possible.
func groupOf(rank int, machines []int, want scheme) (g group, position int) {
	order := spread(machines)
	n := len(order)
	groups := max(1, n/(want.k+want.m))
	for i := range groups {
		members := order[i*n/groups : (i+1)*n/groups]
		if position = slices.Index(members, rank); position >= 0 {
			g.members = members
			break
		}
	}
	g.m = min(want.m, len(g.members)-1)
	g.k = max(1, min(want.k, len(g.members)-g.m))
	return g, position
}

// spread returns the ranks in an order in which neighbours are on different machines: the first
// rank of each machine, then the second of each, and so on.
func spread(machines []int) []int {
	turn := make([]int, len(machines)) // by rank: how many ranks of its machine come before it
	seen := make(map[int]int)
	order := make([]int, len(machines))
	for r, m := range machines {
		order[r], turn[r] = r, seen[m]
		seen[m]++
	}
	slices.SortStableFunc(order, func(a, b int) int { return turn[a] - turn[b] })
	return order
}
