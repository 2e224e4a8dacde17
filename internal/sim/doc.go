// Package sim runs a program of n ranks in virtual time: it owns every message,
// timer and death, in one loop without goroutines, and one seed is one run. Its
// ranks see it as a transport, so that the drivers of the protocols run over it
// as they are, with ten ranks in a test that looks for bad orders of events, or
// with tens of thousands to count messages and time.
//
// What a rank does is a chain of events: pieces of its program, messages,
// completions, news of deaths. Each waits until its rank's CPU is free, then
// runs at once and to its end; what it costs moves the rank's clock
// ([World.RankNow]), which so may be ahead of the world's ([World.Now]). How long
// messages take, and what they cost, is a [Model].
//
// A rank dies in the middle of what it does: messages that its network interface
// would have sent after that moment were never sent. Those under way arrive, or
// some are lost, and every survivor learns of it in its own time.
//
// It must never know what messages are about, use the real clock, or let the
// order of a map decide anything.
package sim
