package collective

type operation uint8

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
	Algorithms []Named
	rules      [kinds][]rule // none for hosts: those for a machine
}

// A Named algorithm is one that tests and measurements can force.
type Named struct {
	Name string
	step step
}

// A rule has the algorithm for up to this many ranks and bytes; 0: any number. Without a use it is
// the board, if there is one.
type rule struct {
	ranks, bytes int
	use          step
}

// Operations are the operations that a Chooser chooses algorithms for. The first rule that applies
// is used; the last one always applies. Bytes are those of the whole vector for Bcast and
// reductions, and those of one rank's part for the other operations. The rules were measured on two
// cores that other programs used, too (load 3 to 20), with 2, 3, 4, 8 and 64 goroutine ranks and 2
// and 4 processes. Each time is the shortest of 9 to 15:
//
//	go -C internal/lab run ./measure -ranks 8
//	mpicxrun -n 4 measure
//
// More than 64 goroutine ranks were not measured. Their reductions with a function, which no board
// carries out, go by a star with up to 512 ranks: the memory of its root grows with their number.
//
// On the board of 4 and 8 processes, which share the cores, each of them needs its core once in a
// short operation: that takes 0.7 of the time of recursive doubling, and half of that of a tree.
//
// More than 4 processes have the crossovers of goroutine ranks. A long Bcast of 8 processes by a
// star takes 0.6 of the time of a tree: nobody waits for a rank that waits for its core.
//
// Between hosts, Barrier, Bcast, Reduce and Allreduce go in two levels: see machines.go. The other
// operations have the rules of processes of one machine, except for direct messages where a tree or
// halving sends fewer at a time. Rings, pairwise exchange, Bruck's Allgather and van de Geijn's
// Bcast were slower everywhere, or no faster, and are not here.
var Operations = [operations]Operation{
	barrier: {"Barrier", []Named{{"board", nil}, {"tree", barrierTree}, {"doubling", barrierDoubling}, {"machines", barrierMachines}}, [kinds][]rule{
		shared:  {{use: nil}, {use: barrierTree}},
		machine: {{ranks: 16, bytes: 8 << 10}, {use: barrierDoubling}},
		hosts:   {{use: barrierMachines}},
	}},
	bcast: {"Bcast", []Named{{"board", nil}, {"tree", bcastTree}, {"star", bcastStar}, {"chain", bcastChain}, {"machines", bcastMachines}}, [kinds][]rule{
		shared: {
			{ranks: 8, bytes: 64 << 10}, {bytes: 4 << 10}, {bytes: 512 << 10, use: bcastTree},
			{ranks: 8, use: bcastChain}, {use: bcastTree},
		},
		machine: {{ranks: 16, bytes: 8 << 10}, {ranks: 8, use: bcastStar}, {use: bcastTree}},
		hosts:   {{use: bcastMachines}},
	}},
	reduce: {"Reduce", []Named{{"board", nil}, {"tree", reduceTree}, {"star", reduceStar}, {"chain", reduceChain}, {"machines", reduceMachines}}, [kinds][]rule{
		shared: {
			{ranks: 8, bytes: 16 << 10}, {bytes: 1 << 10},
			{ranks: 2, bytes: 8 << 10, use: reduceStar}, {bytes: 512 << 10, use: reduceTree},
			{ranks: 2, use: reduceChain}, {use: reduceTree},
		},
		machine: {{ranks: 16, bytes: 8 << 10}, {use: reduceTree}},
		hosts:   {{use: reduceMachines}},
	}},
	allreduce: {"Allreduce", []Named{
		{"board", nil}, {"tree", allreduceTree}, {"doubling", allreduceDoubling}, {"rabenseifner", rabenseifner},
		{"parts", allreduceParts}, {"star", allreduceStar}, {"machines", allreduceMachines},
	}, [kinds][]rule{
		shared: {
			{ranks: 8, bytes: 64 << 10}, {bytes: 4 << 10},
			{ranks: 512, bytes: 4 << 10, use: allreduceStar},
			{bytes: 128 << 10, use: allreduceTree}, {ranks: 2, use: allreduceParts},
			{bytes: 512 << 10, use: allreduceTree}, {ranks: 3, use: allreduceParts}, {ranks: 16, use: rabenseifner},
			{use: allreduceTree},
		},
		machine: {{ranks: 4, bytes: 8 << 10}, {ranks: 16, bytes: 1 << 10}, {bytes: 8 << 10, use: allreduceDoubling}, {ranks: 8, use: allreduceParts}, {use: rabenseifner}},
		hosts:   {{use: allreduceMachines}},
	}},
	reduceScatter: {"ReduceScatter", []Named{
		{"board", nil}, {"tree", reduceScatterTree}, {"direct", reduceScatterDirect}, {"star", reduceScatterStar},
	}, [kinds][]rule{
		shared: {
			{ranks: 8, bytes: 64 << 10}, {bytes: 4 << 10},
			{ranks: 2, use: reduceScatterDirect}, {ranks: 512, bytes: 2 << 10, use: reduceScatterStar},
			{bytes: 128 << 10, use: reduceScatterTree}, {ranks: 8, use: reduceScatterDirect},
			{use: reduceScatterTree},
		},
		machine: {
			{ranks: 16, bytes: 8 << 10}, {ranks: 8, use: reduceScatterDirect}, {bytes: 128 << 10, use: reduceScatterTree}, {use: reduceScatterDirect},
		},
	}},
	allgather: {"Allgather", []Named{
		{"board", nil}, {"tree", allgatherTree}, {"direct", allgatherDirect},
	}, [kinds][]rule{
		shared: {
			{bytes: 8 << 10}, {bytes: 1 << 10, use: allgatherTree}, {ranks: 8, use: allgatherDirect},
			{bytes: 8 << 10, use: allgatherTree}, {use: allgatherDirect},
		},
		machine: {{ranks: 16, bytes: 8 << 10}, {ranks: 8, use: allgatherDirect}, {bytes: 8 << 10, use: allgatherTree}, {use: allgatherDirect}},
	}},
	allgatherv: {"Allgatherv", []Named{{"tree", allgatherTree}, {"direct", allgatherDirect}}, [kinds][]rule{
		shared:  {{ranks: 2, use: allgatherDirect}, {bytes: 8 << 10, use: allgatherTree}, {use: allgatherDirect}},
		machine: {{ranks: 8, use: allgatherDirect}, {bytes: 8 << 10, use: allgatherTree}, {use: allgatherDirect}},
	}},
	alltoall: {"Alltoall", []Named{
		{"board", nil}, {"direct", alltoallDirect}, {"bruck", alltoallBruck},
	}, [kinds][]rule{
		shared: {
			{bytes: 4 << 10}, {ranks: 8, use: alltoallDirect}, {bytes: 512, use: alltoallBruck}, {use: alltoallDirect},
		},
		machine: {{ranks: 16, bytes: 8 << 10}, {ranks: 8, use: alltoallDirect}, {bytes: 512, use: alltoallBruck}, {use: alltoallDirect}},
	}},
	gather: {"Gather", []Named{{"board", nil}, {"tree", gatherTree}, {"direct", gatherDirect}}, [kinds][]rule{
		shared: {
			{ranks: 8, bytes: 64 << 10}, {bytes: 4 << 10},
			{ranks: 2, use: gatherDirect}, {bytes: 1 << 10, use: gatherTree}, {use: gatherDirect},
		},
		machine: {{ranks: 16, bytes: 8 << 10}, {bytes: 4 << 10, use: gatherTree}, {use: gatherDirect}},
	}},
	scatter: {"Scatter", []Named{{"board", nil}, {"tree", scatterTree}, {"direct", scatterDirect}}, [kinds][]rule{
		shared:  {{ranks: 8, bytes: 64 << 10}, {bytes: 16 << 10}, {use: scatterDirect}},
		machine: {{ranks: 16, bytes: 8 << 10}, {use: scatterDirect}},
		hosts:   {{bytes: 4 << 10, use: scatterTree}, {use: scatterDirect}},
	}},
	scan: {"Scan", []Named{{"board", nil}, {"doubling", scanDoubling}, {"chain", scanChain}}, [kinds][]rule{
		shared:  {{ranks: 8, bytes: 16 << 10}, {bytes: 1 << 10}, {use: scanChain}},
		machine: {{ranks: 16, bytes: 8 << 10}, {ranks: 8, use: scanChain}, {use: scanDoubling}},
		hosts:   {{use: scanDoubling}},
	}},
}
