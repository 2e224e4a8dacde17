// Package detector finds out which ranks have died, for transports that do not learn of deaths at
// once. It implements Bosilca, Bouteiller, Guermouche, Herault, Robert, Sens, Dongarra, "Failure
// Detection and Propagation in HPC systems", SC'16:
//
//   - The ranks form a ring. Once a period each rank sends a heartbeat to its observer, the next
//     living rank in the ring. It observes its emitter, the living rank before it.
//   - A rank that has heard nothing from its emitter for a timeout declares the emitter dead. It
//     asks the living rank before the dead one to be its new emitter, and waits two timeouts for
//     the first heartbeat.
//   - Notices of deaths flood the binomial graph, in which the neighbours of rank r of n are
//     r±2^k mod n. A rank passes on each death once, when it learns of it.
//
// With fixed neighbours the graph falls apart once as many ranks have died as a rank has
// neighbours, and the bound of the paper holds only for fewer deaths. In this package the next
// living rank beyond a dead neighbour takes its place, and each new neighbour is sent all deaths
// so far. So the graph stays connected and its paths stay logarithmic, no matter how many ranks
// die. bound_test.go derives the time that this takes. The ring consists of the neighbours at
// distance 1.
//
// While all ranks live, each sends one message a period. For each death a rank sends at most
// 2⌈log2 n⌉ notices. To each neighbour that replaces a dead one it also sends a notice for each
// run of consecutive dead ranks. Its state is its neighbours and these runs.
//
// A living rank may be declared dead if messages take longer than the timeout allows for. The
// declaration is final. The ranks that were its neighbours, and all ranks that it writes to, tell
// it so, and it falls silent: it sends nothing more. In the end the ranks that are not silent
// therefore agree on who has died.
//
// If the network falls apart, each side declares the other sides dead and continues without them.
// When the network is whole again, the largest side makes the others fall silent. If the network
// takes longer than a timeout to fall apart or to become whole, more ranks may fall silent, and
// perhaps all.
//
// With [Config.Ping] there is also a watchman: one rank that pings all others once a period, as in
// Shahzad, Kreutzer, Zeiser, Machado, Pieper, Hager, Wellein, "Building a fault tolerant
// application using the GASPI communication layer", 2015. It detects any number of deaths within
// one timeout. The ring then has four times the period and timeout. It detects the death of the
// watchman.
//
// A [Machine] is this protocol at one rank, without I/O or clock. Its caller must
//
//  1. call Tick when Deadline has come, Step for each message, and Lose for each death that it
//     learns of elsewhere; and after each of these carry out Output in order;
//  2. deliver messages between living ranks reliably, and those from one rank to another in
//     order; messages to a dead rank may be lost, or wait forever;
//  3. start all ranks within a timeout, and keep the messages that arrive for a rank before its
//     start;
//  4. place the ranks of one machine far apart in the ring, if possible: the deaths of j
//     consecutive ranks are detected one after another, in (2j - 1)·Timeout.
//
// The package must never know what died: a process, a machine or a goroutine.
package detector
