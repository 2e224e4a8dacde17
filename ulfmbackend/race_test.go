//go:build race

package ulfmbackend

// raced says that the race detector slows everything down.
const raced = true
