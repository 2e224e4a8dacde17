// Package sim runs a program of n ranks in virtual time. One loop without goroutines decides every
// message, timer and death, and one seed is one run. Ranks see a transport, so the drivers of the
// protocols run over it unchanged: with ten ranks in a test that looks for bad orders of events, or
// with tens of thousands to count messages and time.
//
// A rank's program is a chain of events: pieces of its program, messages, completions, news of
// deaths. Each event waits until its rank's CPU is free, then runs at once and to its end. Its cost
// advances the rank's clock ([World.RankNow]), which may therefore be ahead of the world's
// ([World.Now]). A [Model] says how long messages take, and what they cost.
//
// A rank dies in the middle of an event: messages that its network interface would have sent after
// that moment were never sent. Messages under way arrive, or some are lost. Each survivor learns of
// the death at a different time.
//
// It must never know what messages are about, use the real clock, or let the order of a map decide
// anything.
package sim
