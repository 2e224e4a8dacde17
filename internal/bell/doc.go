// Package bell lets a process sleep until another process of its machine rings, through a word in
// the memory that they share. It must never know why a process rings, nor block except in Sleep.
//
// No ring is lost. The owner of a Bell arms it, looks once more for what it waits for, and then
// sleeps; the others first do what the owner waits for, and then ring. So either the owner finds
// it, or the bell was armed when they rang. A process that is killed while it rings, or that writes
// anything into the word, may keep the owner asleep: for at most the time that it has given to
// Sleep, or until another process calls Wake.
package bell
