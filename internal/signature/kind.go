package signature

import "fmt"

// A Kind says which collective operation a call is. None stands for a point-to-point message.
type Kind uint8

// The kinds. Refused is a call of any kind with a bad argument, at the rank that is its root. The
// others are in the order of their names.
const (
	None Kind = iota
	Refused
	Agree
	AgreeFailed
	Allgather
	AllgatherValue
	Allgatherv
	Allreduce
	AllreduceFunc
	AllreduceValue
	Alltoall
	Alltoallv
	Background
	Barrier
	Bcast
	BcastValue
	CartCreate
	CartSub
	Close
	Create
	CreateIntercomm
	Dup
	Exscan
	ExscanFunc
	ExscanValue
	Fprintf
	Gather
	GatherValue
	Gatherv
	GraphCreate
	Halo
	Merge
	NeighborAllgather
	NeighborAllgatherv
	NeighborAlltoall
	NeighborAlltoallv
	NewHalo
	Reduce
	ReduceFunc
	ReduceScatter
	ReduceScatterBlock
	ReduceScatterBlockFunc
	ReduceScatterFunc
	ReduceValue
	Replace
	Scan
	ScanFunc
	ScanValue
	Scatter
	ScatterValue
	Scatterv
	Shrink
	Split
	SplitShared
	Stopping
	TryAll
	kinds
)

// A form says which fields a call of a kind has. They are the same at all ranks. A spread call has
// a count for each rank.
type form struct {
	name                                     string
	rooted, reducing, typed, counted, spread bool
}

var forms = [kinds]form{
	None:                   {name: "none"},
	Refused:                {name: "a call with a bad argument", rooted: true},
	Agree:                  {name: "Agree"},
	AgreeFailed:            {name: "AgreeFailed"},
	Allgather:              {name: "Allgather", typed: true, counted: true},
	AllgatherValue:         {name: "AllgatherValue"},
	Allgatherv:             {name: "Allgatherv", typed: true, spread: true},
	Allreduce:              {name: "Allreduce", reducing: true, typed: true, counted: true},
	AllreduceFunc:          {name: "AllreduceFunc", typed: true, counted: true},
	AllreduceValue:         {name: "AllreduceValue", typed: true},
	Alltoall:               {name: "Alltoall", typed: true, counted: true},
	Alltoallv:              {name: "Alltoallv", typed: true},
	Background:             {name: "an operation in the background"},
	Barrier:                {name: "Barrier"},
	Bcast:                  {name: "Bcast", rooted: true, typed: true, counted: true},
	BcastValue:             {name: "BcastValue", rooted: true},
	CartCreate:             {name: "CartCreate"},
	CartSub:                {name: "CartSub"},
	Close:                  {name: "Close"},
	Create:                 {name: "Create"},
	CreateIntercomm:        {name: "CreateIntercomm"},
	Dup:                    {name: "Dup"},
	Exscan:                 {name: "Exscan", reducing: true, typed: true, counted: true},
	ExscanFunc:             {name: "ExscanFunc", typed: true, counted: true},
	ExscanValue:            {name: "ExscanValue", typed: true},
	Fprintf:                {name: "Fprintf"},
	Gather:                 {name: "Gather", rooted: true, typed: true, counted: true},
	GatherValue:            {name: "GatherValue", rooted: true},
	Gatherv:                {name: "Gatherv", rooted: true, typed: true},
	GraphCreate:            {name: "GraphCreate"},
	Halo:                   {name: "Halo", typed: true},
	Merge:                  {name: "Merge"},
	NeighborAllgather:      {name: "NeighborAllgather", typed: true, counted: true},
	NeighborAllgatherv:     {name: "NeighborAllgatherv", typed: true},
	NeighborAlltoall:       {name: "NeighborAlltoall", typed: true},
	NeighborAlltoallv:      {name: "NeighborAlltoallv", typed: true},
	NewHalo:                {name: "NewHalo"},
	Reduce:                 {name: "Reduce", rooted: true, reducing: true, typed: true, counted: true},
	ReduceFunc:             {name: "ReduceFunc", rooted: true, typed: true, counted: true},
	ReduceScatter:          {name: "ReduceScatter", reducing: true, typed: true, counted: true, spread: true},
	ReduceScatterBlock:     {name: "ReduceScatterBlock", reducing: true, typed: true, counted: true},
	ReduceScatterBlockFunc: {name: "ReduceScatterBlockFunc", typed: true, counted: true},
	ReduceScatterFunc:      {name: "ReduceScatterFunc", typed: true, counted: true, spread: true},
	ReduceValue:            {name: "ReduceValue", rooted: true, typed: true},
	Replace:                {name: "Replace"},
	Scan:                   {name: "Scan", reducing: true, typed: true, counted: true},
	ScanFunc:               {name: "ScanFunc", typed: true, counted: true},
	ScanValue:              {name: "ScanValue", typed: true},
	Scatter:                {name: "Scatter", rooted: true, typed: true, counted: true},
	ScatterValue:           {name: "ScatterValue", rooted: true},
	Scatterv:               {name: "Scatterv", rooted: true, typed: true},
	Shrink:                 {name: "Shrink"},
	Split:                  {name: "Split"},
	SplitShared:            {name: "SplitShared"},
	Stopping:               {name: "Stopping"},
	TryAll:                 {name: "TryAll"},
}

// IsSpread says whether calls of the kind have a count for each rank, the same at all ranks.
func (k Kind) IsSpread() bool { return k < kinds && forms[k].spread }

func (k Kind) String() string {
	if k < kinds {
		return forms[k].name
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}
