// Package scenario plays scripts: text files that have commands to a state machine and,
// below each, all that followed from it. Only tests of protocols may use it. It must
// never know what the commands mean.
package scenario
