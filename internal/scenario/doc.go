// Package scenario runs scripts: text files with commands to a state machine and, below each
// command, its outputs. Only tests of protocols may use it. It must never know what the commands
// mean.
package scenario
