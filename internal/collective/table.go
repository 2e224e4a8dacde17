package collective

type operation int

const (
	barrier operation = iota
	bcast
	reduce
	allreduce
	reduceScatter
	allgather
	allgatherv
	alltoall
	gather
	scatter
	scan
	operations
)

// An Operation is a collective operation that has several algorithms.
type Operation struct {
	Name       string
	Algorithms []string
}

// Operations are the operations that a Chooser chooses algorithms for.
var Operations = [operations]Operation{
	{"Barrier", []string{"tree", "star", "doubling"}},
	{"Bcast", []string{"tree", "star", "scatter", "chain"}},
	{"Reduce", []string{"tree", "star", "chain"}},
	{"Allreduce", []string{"tree", "doubling", "rabenseifner", "parts", "star"}},
	{"ReduceScatter", []string{"tree", "direct", "star"}},
	{"Allgather", []string{"tree", "direct", "star"}},
	{"Allgatherv", []string{"tree", "direct"}},
	{"Alltoall", []string{"direct", "bruck", "star"}},
	{"Gather", []string{"tree", "direct"}},
	{"Scatter", []string{"tree", "direct"}},
	{"Scan", []string{"doubling", "chain"}},
}

// chainSegment is how many bytes a chain passes on at a time.
const chainSegment = 64 << 10

// A rule names the algorithm for up to this many ranks and bytes; 0: any number.
type rule struct {
	ranks, bytes int
	use          string
}

// table has the rules for each operation and Kind. The first rule that applies is used; the
// last one always applies. Bytes are those of the whole vector for Bcast and reductions, and
// those of one rank's part for the other operations. The rules were measured on two cores that
// other programs used, too (load 3 to 20), with 2, 3, 4, 8 and 64 goroutine ranks and 2 and 4
// processes. Each time is the shortest of 9 to 15:
//
//	go -C internal/lab run ./measure -ranks 8
//	mpicxrun -n 4 measure
//
// More than 64 goroutine ranks were not measured. A star serves up to 512, because the memory
// of its root grows with the number of ranks.
//
// More than 4 processes have the crossovers of goroutine ranks. Hosts have the rules of
// processes of one machine, except for direct messages where a tree or halving sends fewer at a
// time. Measured between two network namespaces, with ranks placed by host and alternating
// (internal/lab/scripts/two-hosts measure), the two placements differ by no more than their noise,
// so there are no algorithms that know the machines. Rabenseifner's begins with neighbours: if
// ranks are placed by host, the smallest part of the vector leaves the machine. Rings, pairwise
// exchange and Bruck's Allgather were slower everywhere, or no faster, and are not here.
var table = [operations][kinds][]rule{
	barrier: {
		{{use: "tree"}},
		{{use: "doubling"}},
		{{use: "doubling"}},
	},
	bcast: {
		{
			{ranks: 512, bytes: 1 << 10, use: "star"}, {bytes: 512 << 10, use: "tree"}, {ranks: 2, use: "chain"}, {ranks: 8, use: "scatter"},
			{use: "tree"},
		},
		{{use: "tree"}},
		{{use: "tree"}},
	},
	reduce: {
		{{ranks: 2, bytes: 8 << 10, use: "star"}, {bytes: 512 << 10, use: "tree"}, {ranks: 2, use: "chain"}, {use: "tree"}},
		{{use: "tree"}},
		{{use: "tree"}},
	},
	allreduce: {
		{
			{ranks: 2, bytes: 2 << 10, use: "doubling"}, {ranks: 512, bytes: 4 << 10, use: "star"}, {bytes: 128 << 10, use: "tree"}, {ranks: 2, use: "parts"},
			{bytes: 512 << 10, use: "tree"}, {ranks: 3, use: "parts"}, {ranks: 16, use: "rabenseifner"}, {use: "tree"},
		},
		{{bytes: 8 << 10, use: "doubling"}, {ranks: 8, use: "parts"}, {use: "rabenseifner"}},
		{{bytes: 8 << 10, use: "doubling"}, {use: "rabenseifner"}},
	},
	reduceScatter: {
		{
			{ranks: 2, use: "direct"}, {ranks: 512, bytes: 2 << 10, use: "star"}, {bytes: 128 << 10, use: "tree"}, {ranks: 8, use: "direct"},
			{use: "tree"},
		},
		{{ranks: 8, use: "direct"}, {bytes: 128 << 10, use: "tree"}, {use: "direct"}},
		{{ranks: 8, use: "direct"}, {bytes: 128 << 10, use: "tree"}, {use: "direct"}},
	},
	allgather: {
		{
			{ranks: 8, bytes: 16 << 10, use: "star"}, {ranks: 512, bytes: 256, use: "star"}, {bytes: 1 << 10, use: "tree"},
			{ranks: 8, use: "direct"}, {bytes: 8 << 10, use: "tree"}, {use: "direct"},
		},
		{{ranks: 8, use: "direct"}, {bytes: 8 << 10, use: "tree"}, {use: "direct"}},
		{{ranks: 8, use: "direct"}, {bytes: 8 << 10, use: "tree"}, {use: "direct"}},
	},
	allgatherv: {
		{{ranks: 2, use: "direct"}, {bytes: 8 << 10, use: "tree"}, {use: "direct"}},
		{{ranks: 8, use: "direct"}, {bytes: 8 << 10, use: "tree"}, {use: "direct"}},
		{{ranks: 8, use: "direct"}, {bytes: 8 << 10, use: "tree"}, {use: "direct"}},
	},
	alltoall: {
		{{ranks: 2, use: "direct"}, {ranks: 64, bytes: 1 << 10, use: "star"}, {ranks: 512, bytes: 64, use: "star"}, {bytes: 512, use: "bruck"}, {use: "direct"}},
		{{ranks: 8, use: "direct"}, {bytes: 512, use: "bruck"}, {use: "direct"}},
		{{ranks: 8, use: "direct"}, {bytes: 512, use: "bruck"}, {use: "direct"}},
	},
	gather: {
		{{ranks: 2, use: "direct"}, {bytes: 1 << 10, use: "tree"}, {use: "direct"}},
		{{bytes: 4 << 10, use: "tree"}, {use: "direct"}},
		{{bytes: 4 << 10, use: "tree"}, {use: "direct"}},
	},
	scatter: {
		{{use: "direct"}},
		{{use: "direct"}},
		{{bytes: 4 << 10, use: "tree"}, {use: "direct"}},
	},
	scan: {
		{{use: "chain"}},
		{{ranks: 4, use: "chain"}, {use: "doubling"}},
		{{use: "doubling"}},
	},
}
